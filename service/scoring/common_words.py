"""The commonest words of seven languages, by which `service/scoring/reading.py` tells them apart.

Articles, pronouns, prepositions, conjunctions, auxiliary verbs and question words, from the stop word lists of the
package stop-words 2025.11 (BSD licence; its lists began as the Snowball project's), with some words of everyday
requests (please, today, where). A word with an apostrophe is what stands before it. English words are in no other list
(in, die, was, no, me). `OFTEN_IN_ENGLISH` are those words of the others that English text has more than four times in
a million words, in names, titles and set phrases (de, la, van), and a few English words and names of dishes (nun, hoe,
quattro): they say less. Counted in 24 million words of questions, captions and encyclopaedia text.
"""

ENGLISH = """
about after again and another any are aren' at be because been before being better between both but by can' cannot
could couldn' did didn' does doesn' don' down during each every few first for from get give good got had has hasn'
have haven' having he' here here' his how how' i i' if into isn' it it' its just last let' make many might most
much must my near need new not of off old only onto other our out own please same shall she she' should shouldn' some
such than that that' the their them then there there' these they they' this those through to too until up very want
wasn' we we' were weren' what what' when where where' which while who who' whose why with without won' would wouldn'
you you' your
"""

OTHERS = {  # by ISO 639 code
    "de": """
    aber acht alle allem allen aller alles als andere anderen auch auf aus außerhalb bei beim bis bist bitte bleibt da
    damit dann darum das dass daß dein deine deinem deinen deiner dem den denn der des deshalb dich diese diesem
    diesen dieser dieses dir doch dort drei durch ein eine einem einen einer eines er es etwas euch euer eure
    funktioniert fünf für ganz ganze gegen geht gestern gibt habe haben hat hatte hatten heute hinter hätte ich ihm
    ihn ihnen ihr ihre ihrem ihren ihrer im innerhalb ins ist ja jede jedem jeden jeder jedes jetzt kann kannst kein
    keine keinem keinen keiner kommt können könnte lassen leider liegt läuft machen macht mehr mein meine meinem
    meinen meiner mich mir mit morgen muss muß möchte möchten müssen nach neben neun nicht nichts noch nun nur ob oder
    ohne sechs sehr seid sein seine seinem seinen seiner seit sich sie sieben sind soll sollen sollte sollten sondern
    statt steht trotz um und uns unser unsere unserem unseren unserer unter viel vier vom von vor wann warum wegen
    weil welche welchem welchen welcher welches wenn wer werde werden wie wieder wieviel wir wird wo wohin wurde
    wurden während würde zehn zu zum zur zurück zwei zwischen über
    """,
    "fr": """
    ai alors après au aucun aucune aujourd' aussi autre autres aux avant avec avez avoir avons ayant bonjour c' ce
    cela ces cet cette ceux chaque chez cinq combien comme d' dans demain depuis des deux dix dois doit donc du déjà
    elle elles en encore entre es est et eu eux faire fais fait faut hier huit ici il ils j' jamais je jusqu' l'
    laquelle le lequel les leur leurs lorsqu' lui m' ma mais marche merci mes moi moins mon même n' ne neuf ni nos
    notre nous ont ou où par parce pas pendant peut peuvent peux plus pour pourquoi prend puis puisque qu'
    quand quatre que quel quelle quelles quelque quels qui quoi reste rien s' sa sans sauf se selon sept sera serait
    ses si sommes sont sous suis sur t' ta tes toi ton toujours tous tout toute toutes trois trop très tu un une va
    vers veuillez veux vient voici voilà vos votre voudrais vous y à ça était été être
    """,
    "es": """
    al algo alguien alguna algún antes aquí así aunque ayer cada cinco como con cual cuando cuanto cuatro cuál cuáles
    cuándo cuánto cuántos cómo debe debo del desde después diez donde dos durante dónde el ella ellos en entre era
    eres es esa ese eso esos esta estaba estar estas este esto estos estoy está están fue funciona gracias ha había
    hace hacia han hasta hay hola hoy la las le les llega lo los mañana mediante mejor mi mientras mis mucho muchos
    muy más mía mío nada necesito ni ninguno nos nosotros nuestra nuestro nuestros nueve nunca ocho otra otras otro
    otros para pero poco por porque puede pueden puedo que queda quedan quiero quién qué se según seis ser será si
    sido siempre siete sin sobre soy su sus sí también tampoco tan tengo tiene tienen toda todas todavía todo todos
    toma tres tu tus un una unas uno unos usted ustedes viene y ya yo él
    """,
    "it": """
    abbiamo ad agli ai al alla alle allo anche ancora arriva avere avete aveva buongiorno c' che chi ci cinque co' con
    cos' cosa così cui da dagli dai dal dall' dalla dalle degli dei del dell' della delle dello deve devo di dieci
    domani dopo dov' dove durante ecco ed entro era essere fa fare fino fosse fra funziona già gli grazie ha hai hanno
    ho ieri il io l' la le lei lo loro lui ma mai mediante mi mia mie miei mio molto ne negli nei nel nell' nella
    nelle nessun niente noi non nostra nostri nostro nove nuova nuovo oggi ogni ora otto per perché però più poi posso
    prende prima può qual quale quali quando quanta quante quanti quanto quattro quella quelle quello quest' questa
    queste questi questo qui quindi resta sarà se sei sempre senza sette si sia siamo siete solo sono sopra sotto sta
    stato su sua sui sul sull' sulla sulle sullo suo tanto tra tre troppo tu tua tuo tutta tutte tutti tutto un un'
    una uno vi viene voglio voi vorrei vostra vostro è
    """,
    "nl": """
    aan acht al alle alleen als alstublieft altijd ander andere bedankt ben bent bij binnen blijft buiten dan dat de
    deze dit doen drie dus een eens elke en er erg gaan gaat ge geen geweest gisteren graag haar heb hebben hebt heeft
    heel hem het hij hoe hoelang hun iedere iemand iets ik ja je jij jullie kan komen komt kon krijgt kunnen kunt
    liever ligt maar mag mee meer met mij mijn mijne moet moeten mogen morgen na naar negen niet niets nieuwe nog
    nooit nu om omdat onder ons onze ook op opnieuw sinds staat steeds sturen te tegen tien tijdens toch toen tot twee
    uit uw van vanaf vandaag veel vier vijf volgens voor waar waarom wanneer waren wat weer welk welke werd werden
    werkt wie wij wil wilt worden wordt zal ze zei zes zeven zich zij zijn zo zonder zou zullen één
    """,
    "pt": """
    agora ainda algum alguma alguém ali amanhã antes ao aos após aquela aquele aqui até boa bom cada chega cinco como
    da daqui das de dela dele dentro depois desde desta deste deve devo dez dois dos duas durante ela elas ele eles em
    entre então era essa esse esta estar estava este estou está estão eu faz fazer fica ficam foi funciona havia hoje
    há isso isto já lhe mais mas melhor meu meus minha minhas muito muitos na nas nem nenhum nenhuma nessa nesse nesta
    neste nos nossa nossas nosso nossos nove num numa nunca não né obrigada obrigado oito olá onde ontem os ou outra
    outras outro outros para pela pelas pelo pelos perto pode podem podia por porque posso pouco pra preciso quais
    qual qualquer quando quanta quantas quanto quantos quatro que quem quero se segundo seis sem sempre ser será sete
    seu seus sim sobre sou sua suas são só também te tem tenho ter toda todas todo todos três tudo têm um uma uns vai
    vem você vocês à às é
    """,
}

OFTEN_IN_ENGLISH = """
ad ai al ali alla allen au avant ben bent boa ce chi cinque con d' da dan das de del della den der des di dos dove du
ed el ella em en er era es esa est et eu fa fare ge ha hai han hat hay heel ho hoe hun il im ins ja kan komen l' la
las le les lo los ma mes met mi mia mit n' na non nun ons op os otto par para per plus pour quattro sa se sept si sim
sin solo sous soy su sur tan te todo ton tu un uno uw van vi von wo y ya yo à
"""
