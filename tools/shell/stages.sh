# The stages of ./check. Each returns on success and stops with a sentence on failure. Sourced.

# stage NAME: prints a heading with the seconds so far.
stage() {
  printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"
}

check_format() {
  stage "format"
  fetch_clang_format
  local -a files
  mapfile -t files < <(find src include tests bench examples fuzz \
    \( -name '*.h' -o -name '*.cc' -o -name '*.cu' \) 2>/dev/null)
  "$clang_format" --dry-run -Werror "${files[@]}" ||
    stop 1 "run: $clang_format -i on these files"
}

check_rules() {
  stage "rules"
  python3 -B tools/lint/lint_test.py 2>&1 | tail -n 1
  python3 -B tools/lint/lint.py || stop 1 "the places above break a rule"
  local test
  for test in tools/shell/*_test.sh; do "$test" || stop 1 "$test failed"; done
  python3 -B tools/instructions/instructions_test.py || stop 1 "the tests of the count of instructions failed"
  python3 -B tools/gpu/first_run_test.py || stop 1 "the tests of the steps on a machine with a GPU failed"
  python3 -B tools/gpu/kit_test.py || stop 1 "the tests of the kit for machines with a GPU failed"
}

# Checks the sources that differ from main, or all of them (--tidy), with the commands of a build without
# unity files and precompiled headers; nothing is compiled there.
check_tidy() {
  stage "tidy"
  local folder=$root/build/tidy
  fetch_clang_tidy
  make_folder "$folder"
  configure "$folder" -DBRAID_DEVELOP=OFF -DBRAID_UNITY=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
  compile "$folder" build.ninja # with the current sources
  make_folder "$folder/headers"
  # LibTorch's headers need OpenMP's. clang has none, and GCC's does not suit it.
  echo 'extern "C" { int omp_get_max_threads(); int omp_get_num_threads(); int omp_get_thread_num();
    int omp_in_parallel(); void omp_set_num_threads(int); }' >"$folder/headers/omp.h"
  python3 -B tools/lint/tidy.py "$clang_tidy" "$folder" "$@" || stop 1 "clang-tidy complains of the places above"
}
run_tidy() { check_tidy --all; }

build_everything() {
  stage "build"
  make_folder "$build"
  lock "$build/braid-lock"
  configure "$build" -DBRAID_DEVELOP=ON -DBRAID_WERROR=ON
  compile "$build" all
  unlock
  check_run_paths "$build"/bin/* "$build/libbraid.so"  # not those of earlier versions
}

# empty_run_paths FILE...: prints those whose run path has an empty element. The loader takes libraries from the current
# folder for it, whoever wrote them.
empty_run_paths() {
  local file path
  for file in "$@"; do
    path=$(LC_ALL=C readelf -d "$file" 2>/dev/null | sed -n 's/.*(R[UN]*PATH).*\[\(.*\)\]$/\1/p')
    [[ -z $path || :$path: != *::* ]] || printf '%s: %s\n' "$file" "$path"
  done
}

check_run_paths() {
  local found file
  command -v readelf >/dev/null || stop 2 "readelf is missing"
  for file in "$@"; do [[ -e $file ]] || stop 1 "there is no $file"; done
  found=$(empty_run_paths "$@")
  [[ -z $found ]] || stop 1 "these would load libraries from the current folder:"$'\n'"$found"
}

# run_ctest FOLDER MORE CTEST-ARGUMENT... Runs MORE tests than cores at a time: some wait for peers to die.
# Programs in a shell's background ignore SIGINT, those of nohup SIGHUP; tests of these signals would hang.
run_ctest() {
  local folder=$1 more=$2
  shift 2
  env --default-signal=INT,HUP,TERM ctest --test-dir "$folder" -j "$(($(nproc) + more))" \
    --output-on-failure --no-tests=error --no-label-summary "$@"
}

run_tests() {
  stage "tests"
  summary=$build/braid-tests.log
  local more=2  # slow ones take much memory
  ((${#exclude[@]})) || more=1
  run_ctest "$build" "$more" "${exclude[@]}" | tee "$summary" || stop 1 "tests failed"
}

# The tests labelled slow by quarters, as many as start within slow_minutes, at least one. Which is the
# first depends on the number of commits: a slow machine takes all of them in turn.
run_slow_within() {
  local commits turn quarter
  commits=$(git rev-list --count HEAD 2>/dev/null) || commits=0
  for turn in 0 1 2 3; do
    if ((turn > 0 && SECONDS >= slow_minutes * 60)); then
      stage "the other slow tests are left to the next commits: $((SECONDS / 60)) minutes have passed"
      return
    fi
    quarter=$(((commits + turn) % 4 + 1))
    stage "slow tests, quarter $quarter of 4"
    run_ctest "$build" 1 -L slow -I "$quarter,,4" || stop 1 "slow tests failed"
  done
}

# Repeats ctest's summary, for those who only read the end.
print_summary() {
  ((${#stages[@]})) || return 0
  stage "done, and the tests were"
  sed -n '/tests passed/,$p' "$summary"
}

# run_sanitized NAME FLAGS LABEL...: the tests of these folders, in a separate build folder.
run_sanitized() {
  local name=$1 flags=$2 folder=$root/build/$1 label
  shift 2
  local -a targets=()
  for label in "$@"; do targets+=("${label}_test"); done
  stage "$name"
  make_folder "$folder"
  # LibTorch was built with NDEBUG; without it some of its classes have other members.
  # Instrumented, std::function seems uninitialised to GCC where std::regex moves one.
  configure "$folder" -DBRAID_DEVELOP=ON \
    "-DCMAKE_CXX_FLAGS_RELEASE=$flags -Wno-maybe-uninitialized -DNDEBUG -O1 -g1 -fno-omit-frame-pointer"
  compile "$folder" "${targets[@]}"
  run_ctest "$folder" 1 "${exclude[@]}" -L "^($(IFS='|' && echo "$*"))$" ||
    stop 1 "tests failed under $name"
}

run_asan() {
  ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
    run_sanitized asan "-fsanitize=address,undefined" base text image weights ops gpu_kernels net serve
}

# LibTorch's own threads are not instrumented, so it gets one: all threads that are seen are ours.
run_tsan() {
  local -a exclude=(-LE "not_for_tsan${exclude[1]:+|slow}")
  # Asio's thread pool has fences, which GCC says are not instrumented: -Wno-tsan.
  # A test requests more memory than there is.
  local options="allocator_may_return_null=1:suppressions=$root/tools/shell/tsan.suppressions"
  TSAN_OPTIONS=$options OMP_NUM_THREADS=1 \
    run_sanitized tsan "-fsanitize=thread -Wno-tsan" base comm weights parallel net serve
}

# The rows of instruction_sets.txt that this processor supports, except its own: tests ran on that.
older_instruction_sets() {
  local name settings cpu
  local -a rows=()
  cpu=$(</proc/cpuinfo)
  while read -r name settings; do
    [[ $name != baseline && $cpu != *" $name"* ]] || rows+=("$name $settings")
  done < <(grep -v '^#' tools/shell/instruction_sets.txt)
  ((${#rows[@]} < 2)) || printf '%s\n' "${rows[@]:0:${#rows[@]}-1}"
}

# run_on_older_processors LABEL...: the tests with these labels, on each of those sets.
run_on_older_processors() {
  local labels name settings
  labels="^($(IFS='|' && echo "$*"))$"
  while read -r name settings <&3; do
    grep -qw avx_vnni /proc/cpuinfo || settings=${settings/AVX2_VNNI/AVX512_CORE_VNNI}
    stage "tests as on a processor with $name at most"
    # shellcheck disable=SC2086,SC2163
    (export $settings BRAID_ISA="$name" && run_ctest "$build" 2 "${exclude[@]}" -L "$labels") ||
      stop 1 "tests failed with BRAID_ISA=$name $settings"
  done 3< <(older_instruction_sets)
}

run_isa() {
  run_on_older_processors weights ops nn models parallel pipeline
}

run_isa_parity() {
  run_on_older_processors models parity
}

# fuzz_one TARGET: starts from the committed seeds and those of earlier runs.
fuzz_one() {
  local name=${1##*/} work
  work=$root/build/fuzz/found/${name%_fuzz}
  mkdir -p "$work" "$root/fuzz/corpus/${name%_fuzz}"
  if "$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$work-" \
    -print_final_stats=1 "$work" "$root/fuzz/corpus/${name%_fuzz}" >"$work.log" 2>&1; then
    printf '%-20s %s runs\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$work.log")"
  else
    tail -n 40 "$work.log"
    return 1
  fi
}

run_fuzz() {
  stage "fuzz, $seconds s a target"
  local folder=$root/build/fuzz target
  local -a fuzzing=()
  make_folder "$folder"
  forget_others "$folder" "$root/fuzz"
  cmake -S fuzz -B "$folder" -G Ninja -DCMAKE_CXX_COMPILER=clang++ >"$folder/braid-build.log" 2>&1 ||
    show_failure "$folder/braid-build.log"
  compile "$folder" all
  for target in "$folder"/bin/*_fuzz; do
    ((${#fuzzing[@]} < $(nproc))) || { wait "${fuzzing[0]}" || stop 1 "a fuzz target failed"; fuzzing=("${fuzzing[@]:1}"); }
    fuzz_one "$target" &
    fuzzing+=($!)
  done
  for target in "${fuzzing[@]}"; do wait "$target" || stop 1 "a fuzz target failed"; done
}

run_bench() {
  stage "bench"
  local bench
  for bench in "$build"/bin/*_bench; do "$bench" || stop 1 "${bench##*/} failed"; done
  run_instructions
  run_report
}

# What the tree is compared with: $BRAID_BASE, or where it left main; on main itself, what was committed before.
base_commit() {
  local base
  if [[ -n ${BRAID_BASE:-} ]]; then
    git rev-parse --verify --quiet "$BRAID_BASE^{commit}" || stop 2 "BRAID_BASE names no commit: $BRAID_BASE"
    return
  fi
  base=$(git merge-base HEAD main 2>/dev/null || git merge-base HEAD origin/main 2>/dev/null) || return 0
  if [[ $base == "$(git rev-parse HEAD)" ]] && git diff --quiet HEAD; then
    base=$(git rev-parse --verify --quiet "HEAD^") || return 0
  fi
  echo "$base"
}

# build_base COMMIT: sets `base_program` to that commit's bench/instructions, built beside this tree; leaves it
# empty if the commit has none. Kept for the next time: another base is an incremental build.
build_base() {
  local folder=$root/build/base
  base_program=
  git cat-file -e "$1:bench/instructions.cc" 2>/dev/null || return 0
  make_folder "$folder/build"
  # A worktree of a checkout that was copied or moved is another's, or nobody's.
  [[ $(git -C "$folder/tree" rev-parse --path-format=absolute --git-common-dir 2>/dev/null) -ef \
    $(git rev-parse --path-format=absolute --git-common-dir) &&
    $(git -C "$folder/tree" rev-parse --show-toplevel 2>/dev/null) -ef $folder/tree ]] || rm -rf "$folder/tree"
  git worktree prune
  [[ -e $folder/tree/.git ]] || git worktree add --force --detach "$folder/tree" "$1" >/dev/null 2>&1 ||
    stop 2 "no worktree of $1 could be made in $folder/tree"
  git -C "$folder/tree" checkout --quiet --force --detach "$1" || stop 2 "$1 could not be checked out"
  (root=$folder/tree && configure "$folder/build" -DBRAID_DEVELOP=ON && compile "$folder/build" instructions) ||
    stop 1 "the base $1 could not be built"
  base_program=$folder/build/bin/instructions
}

# A gate that other programs cannot disturb: valgrind counts the instructions of fixed work in this tree and in its base.
run_instructions() {
  stage "instructions"
  local base base_program=
  if ! command -v valgrind >/dev/null || ! grep -qw avx2 /proc/cpuinfo; then
    say "instructions are counted by valgrind on a processor with AVX2: not here"
    return 0
  fi
  base=$(base_commit) || exit 2
  [[ -z $base ]] || build_base "$base"
  [[ -n $base_program ]] || say "nothing to compare with: no base has bench/instructions"
  python3 -B tools/instructions/instructions.py "$build/bin/instructions" ${base_program:+"$base_program"} ||
    stop 1 "the work above takes more instructions than in ${base:-the base}. If that is meant, say why in the commit"
}

# Later runs on a machine are compared with its first one; remove the file to start over.
run_report() {
  local last=$build/braid-report.json
  local -a against=()
  [[ ! -e $last ]] || against=(--against "$last")
  stage "report"
  "$build/bin/report" "${against[@]}" --output "$last.next" || stop 1 "bench/report failed"
  [[ -e $last ]] || mv "$last.next" "$last"
}

# At most three minutes, for continuous integration.
run_serve_short() {
  stage "the page in three browsers"
  timeout 180 python3 -B tools/serve/page_engines.py "$build/bin/braid" "$build" ||
    stop 1 "the page failed in a browser"
}

run_serve() {
  stage "serve"
  local venv braid=$build/bin/braid
  venv=$cache/serve-clients-$(cksum <tools/serve/requirements.txt | cut -d' ' -f1)
  if [[ ! -e $venv/complete ]]; then
    say "installing openai into $venv (once)"
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir \
      -r tools/serve/requirements.txt || stop 1 "openai could not be installed"
    touch "$venv/complete"
  fi
  "$venv/bin/python" -B tools/serve/clients.py "$braid" || stop 1 "OpenAI's client and the server differ"
  python3 -B tools/serve/page_engines.py "$braid" "$build" || stop 1 "the page failed in a browser"
  python3 -B tools/serve/page.py "$braid" "$build" || stop 1 "the tests of the page failed"
  python3 -B tools/serve/page_pictures.py "$braid" "$build" || stop 1 "the tests of the page's input pictures failed"
  python3 -B tools/serve/page_layers.py "$braid" "$build" || stop 1 "the page failed at layers in a browser"
  python3 -B tools/serve/page_enhancer.py "$braid" "$build" || stop 1 "the page failed at rewriting prompts"
  python3 -B tools/serve/page_fields.py "$braid" "$build" || stop 1 "the page's fields failed in a browser"
  python3 -B tools/serve/page_files.py "$braid" "$build" || stop 1 "files brought to the page are taken otherwise"
  python3 -B tools/serve/page_gallery.py "$braid" "$build" || stop 1 "the gallery failed in a browser"
  python3 -B tools/serve/page_faults.py "$braid" "$build" || stop 1 "the page failed by keyboard, on a small phone or at a fault"
  python3 -B tools/serve/pictures_in.py "$braid" || stop 1 "input pictures over HTTP give other results"
  python3 -B tools/serve/same_bytes.py "$braid" || stop 1 "pictures over HTTP are not those of generate"
  python3 -B tools/serve/replicas.py "$braid" || stop 1 "replicas lost a request"
  python3 -B tools/serve/proxies.py "$braid" || stop 1 "addresses do not lead back through a proxy"
  python3 -B tools/serve/ranks.py "$braid" || stop 1 "ranks under mpirun give other results"
  python3 -B tools/serve/faults.py "$braid" || stop 1 "the server failed under a load or a fault"
}

run_live() {
  stage "live"
  local venv
  venv=$cache/parity-$(cksum <tools/parity/requirements.txt | cut -d' ' -f1)
  if [[ ! -e $venv/complete ]]; then
    say "installing diffusers into $venv (once)"
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir \
      -r tools/parity/requirements.txt || stop 1 "diffusers could not be installed"
    touch "$venv/complete"
  fi
  "$venv/bin/python" tools/parity/live.py || stop 1 "Braid and diffusers differ"
  "$venv/bin/python" -B tools/hub/exchange.py "$build/bin/braid" ||
    stop 1 "Braid and Hugging Face's library do not read each other's caches"
  run_accelerated "$venv"
}
