# shellcheck shell=bash
# Sourced by check.sh and replicas.sh.

# soon_enough MILLISECONDS LIMIT_SECONDS WHAT: returns 1 where it took longer. On a machine whose CPUs others keep busy (a
# load of two or more a CPU) a miss is told and no failure: opening models is work, and says nothing of the service there.
soon_enough() {
    local busy
    echo "$3 after $1 ms"
    [ "$1" -ge $(($2 * 1000)) ] || return 0
    read -r busy _ </proc/loadavg
    if [ "${busy%.*}" -lt $((2 * $(nproc))) ]; then
        echo "FAILED: $3: expected it within $2 s" >&2
        return 1
    fi
    echo "MISSED: $3: expected it within $2 s; the machine has a load of $busy"
}
