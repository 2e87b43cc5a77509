/** Sentences to try, all written for this page. */

/** Pairs of every likeness; each model's own scores of them say what its numbers mean. */
export const ANCHORS = [
  ["A man is playing a guitar.", "A man plays the guitar."],
  ["A man is playing a guitar.", "Someone plays an instrument."],
  ["A man is playing a guitar.", "A woman is slicing an onion."],
  ["The cat is asleep on the sofa.", "A cat sleeps on the couch."],
  ["The cat is asleep on the sofa.", "A dog is lying on the bed."],
  ["The train was late this morning.", "This morning the train came late."],
  ["The train was late this morning.", "The bus arrived on time."],
  ["She bought a new car last week.", "She purchased a new vehicle last week."],
  ["She bought a new car last week.", "He repaired his old car."],
  ["Children are playing football in the park.", "Some kids play soccer outdoors."],
  ["Children are playing football in the park.", "A boy kicks a ball."],
  ["Children are playing football in the park.", "The stadium was full of fans."],
  ["The soup is too hot to eat.", "The coffee is still hot."],
  ["The soup is too hot to eat.", "You cannot eat the soup yet because it is too hot."],
  ["How do I reset my password?", "How can I change my password?"],
  ["How do I reset my password?", "Where can I see my invoices?"],
  ["Heavy rain flooded the streets.", "Streets were flooded after heavy rain."],
  ["Heavy rain flooded the streets.", "The storm damaged several houses."],
  ["Two people are walking along the beach.", "A couple walks by the sea."],
  ["Two people are walking along the beach.", "People are swimming in the sea."],
  ["The company raised its prices.", "Prices went up at the company."],
  ["The company raised its prices.", "The firm lowered its costs."],
  ["The company raised its prices.", "The shop sells bread."],
];

/** Pairs for Compare. `hard` says why models fail: people would not call these alike. */
export const PAIRS = [
  { name: "Music", a: "A man is playing a guitar.", b: "Someone plays an instrument." },
  { name: "Other words", a: "She bought a new car last week.", b: "She purchased a new vehicle last week." },
  { name: "Unrelated", a: "Heavy rain flooded the streets.", b: "The shop sells bread." },
  {
    name: "Negation",
    a: "The patient is allergic to penicillin.",
    b: "The patient is not allergic to penicillin.",
    hard: "The second sentence says the opposite, by one short word.",
    follow: true,
  },
  {
    name: "Numbers",
    a: "The flight leaves at 8:15.",
    b: "The flight leaves at 9:45.",
    hard: "Only the time differs, and it is what matters.",
  },
  {
    name: "Roles",
    a: "The dog chases the cat.",
    b: "The cat chases the dog.",
    hard: "The same words with the roles exchanged: a mean of words cannot tell them apart.",
  },
];

export const QUESTIONS = [
  {
    name: "Password",
    query: "How do I reset my password?",
    candidates: [
      "Our office opens at nine.",
      "Passwords are never sent by mail.",
      "Use the link on the sign-in page to choose a new password.",
      "Your password must have twelve characters.",
      "To reset the device, hold the button for ten seconds.",
      "If you have forgotten your password, click the link below the sign-in form to reset it.",
      "You can change your address in the settings.",
      "Never tell anybody your password.",
    ],
  },
  {
    name: "Moon",
    query: "Who was the first person on the moon?",
    candidates: [
      "The moon is 384,000 kilometres from the earth.",
      "Neil Armstrong stepped onto the lunar surface in July 1969.",
      "The first person in space was Yuri Gagarin.",
      "Michael Collins stayed in orbit around the moon.",
      "On the moon a person weighs a sixth of what they weigh at home.",
      "Armstrong was born in Ohio.",
      "Neil Armstrong was the first man to walk on the moon.",
    ],
  },
];

export const PREMISES = [
  { name: "It follows", premise: "Two dogs are running through the snow.", hypothesis: "Two animals are running outdoors." },
  { name: "Contradiction", premise: "A man is playing a guitar on the stage.", hypothesis: "There is no man playing a guitar." },
  { name: "Open", premise: "A woman is reading a book on a bench.", hypothesis: "A woman is waiting for a bus." },
];

export const POLICY = {
  name: "Bicycle hire",
  document: `# Bicycle hire

## Booking

A bicycle can be booked up to 60 days ahead. You pay 10 euros when you book and the rest at the shop.

Cancelling is free until 24 hours before the hire begins. After that we keep the 10 euros.

## Using the bicycle

- Children under 12 must wear a helmet, which we lend without charge.
- You may not take a bicycle on a train.

| Bicycle | Day | Deposit |
|---|---|---|
| City | 15 euros | none |
| Electric | 35 euros | 200 euros |

Theft must be reported to the police on the same day.
`,
  claims: [
    "You can reserve a bicycle two months in advance.",
    "A booking costs 25 euros at once.",
    "Helmets for children cost extra.",
    "Bicycles can be taken on trains.",
    "An electric bicycle needs a deposit of 200 euros.",
    "The shop repairs flat tyres.",
  ],
};

/** A small file for Batch. */
export const SAMPLE = [["id", "a", "b"], ...ANCHORS.map(([a, b], i) => [String(i + 1), a, b])];

/** An FAQ, with a question that it answers and one that it does not. */
export const FAQ = {
  entries: [
    { question: "How do I get a library card?", answer: "Bring an identity card and a letter that shows your address to the desk. The card is ready at once and costs nothing." },
    { question: "How long may I keep a book?", answer: "Books are lent for four weeks, films and games for one week." },
    { question: "What happens if I bring something back late?", answer: "Each item costs twenty cents a day from the first day after its date, ten euros at most." },
    { question: "When is the library open?", answer: "Tuesday to Friday from ten to seven and on Saturday from ten to two. It is closed on Sunday and Monday." },
    { question: "Can I give books back when you are closed?", answer: "Yes, there is a box for returns beside the entrance, day and night." },
    { question: "Can our group book a room?", answer: "Two rooms for up to eight people can be booked for three hours a day, with a card and free of charge." },
  ],
  questions: ["What does it cost if I am three days late?", "Can four of us book a room to study?", "Where can I park my car?"],
};

/** Texts for Duplicates: the same words, other words, and another order number. */
export const TICKETS = {
  name: "Tickets",
  texts: [
    "The parcel for order 4711 has not arrived.",
    "the parcel for order 4711 has not arrived",
    "I am still waiting for my delivery. The order number is 4711.",
    "The parcel for order 4712 has not arrived.",
    "You charged my card twice for the same order.",
    "I was billed two times for one purchase.",
    "Do you ship to Norway?",
  ],
};
