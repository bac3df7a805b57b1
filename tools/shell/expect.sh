# What the tests of the scripts share. Sourced.

# expect WORDS COMMAND...: the command's output contains them.
expect() {
  local said
  said=$("${@:2}" 2>&1 </dev/null) || true
  [[ $said == *"$1"* ]] || stop 1 "'${*:2}' should say '$1', it said '$said'"
}

# expect_not WORDS COMMAND...: the command's output does not contain them.
expect_not() {
  local said
  said=$("${@:2}" 2>&1 </dev/null) || true
  [[ $said != *"$1"* ]] || stop 1 "'${*:2}' should not say '$1', it said '$said'"
}

# expect_nothing COMMAND...: it succeeds without a word.
expect_nothing() {
  local said
  said=$("$@" 2>&1 </dev/null) && [[ -z $said ]] || stop 1 "'$*' should succeed without a word, it said '$said'"
}
