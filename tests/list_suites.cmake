# Writes the ctest cases of a test program: one for each large suite, one for several small ones. A
# program with LibTorch spends 0.4 s of a core on registering operators, and there are hundreds of
# suites.
#   cmake -Dprogram=FILE -Dlabel=NAME -Dmost_tests=NUMBER -Dcost=NUMBER -Doutput=FILE
#         -P list_suites.cmake
# Suites that share a case have most_tests together; one with half of that has its own, and so has one of
# peaks. Each test of a class Slow* is a case: some measure the memory of their process, and together they
# would outlast the time that a case has. A test costs `cost` beside those of other programs.
cmake_minimum_required(VERSION 3.25)

# These race on purpose, take half a minute under TSan, or use threads of OpenMP's, whose library is
# not instrumented.
set(not_for_tsan
    "^(SimulatedDevice|OrderChecker|Each/KnownRaces|(Slow)?RandomSchedules|AdaptersOnThreads)$")

execute_process(COMMAND ${program} --gtest_list_tests OUTPUT_VARIABLE list
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${list}")
set(suites "")
foreach(line ${lines})
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.( |$)")
    set(suite ${CMAKE_MATCH_1})
    list(APPEND suites ${suite})
    set(tests_${suite} 0)
    set(names_${suite} "")
  elseif(suites AND line MATCHES "^  ([^ ]+)")
    math(EXPR tests_${suite} "${tests_${suite}} + 1")
    list(APPEND names_${suite} ${CMAKE_MATCH_1})
  endif()
endforeach()

# Cases that cost much start first, so that no core is idle at the end. They run beside each other:
# waiting threads must not spin on the cores that others compute on (four suites took 58 s spinning,
# 4 s passive, on two busy cores).
set(cases "")
function(write_named_case name filter tests labels)
  math(EXPR cost "${cost} * ${tests}")
  # Without a GPU its suites are skipped as a whole, and ctest says so.
  set(skip "")
  if(label STREQUAL gpu)
    set(skip "SKIP_REGULAR_EXPRESSION \"there is no GPU\" ")
  endif()
  string(APPEND cases
    "add_test([=[${name}]=] [=[${program}]=] [=[--gtest_filter=${filter}]=])\n"
    "set_tests_properties([=[${name}]=] PROPERTIES LABELS \"${labels}\" COST ${cost} "
    "${skip}ENVIRONMENT OMP_WAIT_POLICY=passive TIMEOUT 600)\n")
  set(cases "${cases}" PARENT_SCOPE)
endfunction()

function(write_case suites tests labels)
  list(GET suites 0 name)
  list(LENGTH suites count)
  if(count GREATER 1)
    list(GET suites -1 last)
    set(name "${name} to ${last} (${label}, ${count} suites)")
  endif()
  list(TRANSFORM suites APPEND ".*")
  list(JOIN suites ":" filter)
  write_named_case("${name}" "${filter}" ${tests} "${labels}")
  set(cases "${cases}" PARENT_SCOPE)
endfunction()

set(kinds "")  # the distinct lists of labels, under names without a semicolon
foreach(suite ${suites})
  set(labels ${label})
  if(suite MATCHES Slow)
    list(APPEND labels slow)
  endif()
  if(suite MATCHES "^(Fixtures|Demo)/")
    list(APPEND labels parity)  # against the reference, or against one rank
  endif()
  if(suite MATCHES "${not_for_tsan}")
    list(APPEND labels not_for_tsan)
  endif()
  if(suite MATCHES "(^|/)Slow[^/]*$")
    foreach(test ${names_${suite}})
      write_named_case("${suite}.${test} (${label})" "${suite}.${test}" ${most_tests} "${labels}")
    endforeach()
    continue()
  endif()
  # What the process freed before and gives back meanwhile would be missing from a measured peak.
  math(EXPR doubled "2 * ${tests_${suite}}")
  if(suite MATCHES "Peaks$" OR doubled GREATER_EQUAL most_tests)
    write_case(${suite} ${tests_${suite}} "${labels}")
    continue()
  endif()
  string(REPLACE ";" "_" kind "${labels}")
  if(NOT kind IN_LIST kinds)
    list(APPEND kinds ${kind})
    set(small_${kind} "")
    set(sum_${kind} 0)
    set(labels_${kind} "${labels}")
  endif()
  math(EXPR sum "${sum_${kind}} + ${tests_${suite}}")
  if(sum GREATER most_tests)
    write_case("${small_${kind}}" ${sum_${kind}} "${labels}")
    set(small_${kind} "")
    set(sum ${tests_${suite}})
  endif()
  list(APPEND small_${kind} ${suite})
  set(sum_${kind} ${sum})
endforeach()
foreach(kind ${kinds})
  write_case("${small_${kind}}" ${sum_${kind}} "${labels_${kind}}")
endforeach()
file(WRITE ${output} "${cases}")
