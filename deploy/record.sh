# shellcheck shell=bash
# deploy/CHECKED: the commit that deploy/check.sh last passed on. Sourced by check.sh, which writes it, and static.sh.

CHECKED_PATHS=(service contract semblance models deploy Dockerfile .dockerignore docker-bake.hcl docker-compose.yml
    docker-compose.gpu.yml pyproject.toml constraints.txt requirements.txt requirements-gpu.txt requirements-build.txt ':!deploy/CHECKED')

# clean_commit: the commit that lies here, or nothing where what is checked differs from it.
clean_commit() {
    [ -z "$(git status --porcelain -- "${CHECKED_PATHS[@]}" 2>&1)" ] && git rev-parse HEAD
}

# record COMMIT HOW
record() {
    printf '%s  %s, %s\n' "$1" "$(date -u +%F)" "$2" >deploy/CHECKED
}

# changed_since_checked: one line, where the history at hand has that commit.
changed_since_checked() {
    local commit
    commit=$(head -c 40 deploy/CHECKED 2>/dev/null) && git cat-file -e "$commit^{commit}" 2>/dev/null || return 0
    echo "deploy/check.sh last passed on $commit; files changed since: $(git diff --name-only "$commit" -- "${CHECKED_PATHS[@]}" | wc -l)"
}
