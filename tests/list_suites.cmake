# Writes the ctest cases of a test program, one a suite: a program with LibTorch takes 0.2 s to
# start, and there are hundreds of tests.
#   cmake -Dprogram=FILE -Dlabel=NAME -Doutput=FILE -P list_suites.cmake
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${program} --gtest_list_tests OUTPUT_VARIABLE list
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${list}")
set(suites "")
foreach(line ${lines})
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.( |$)")
    set(suite ${CMAKE_MATCH_1})
    list(APPEND suites ${suite})
    set(tests_${suite} 0)
  elseif(suites)
    math(EXPR tests_${suite} "${tests_${suite}} + 1")
  endif()
endforeach()

# Large suites start first. Tests run beside each other: waiting threads must not spin on the cores
# that others compute on (four suites took 58 s spinning, 4 s passive, on two busy cores).
set(cases "")
foreach(suite ${suites})
  set(labels ${label})
  if(suite MATCHES Slow)
    list(APPEND labels slow)
  endif()
  if(suite MATCHES "^(Fixtures|Demo)/")
    list(APPEND labels parity)  # with the reference, or with one rank
  endif()
  # Where there is none the suites of a GPU are skipped as a whole, and ctest says so.
  set(skip "")
  if(label STREQUAL gpu)
    set(skip "SKIP_REGULAR_EXPRESSION \"there is no GPU\" ")
  endif()
  string(APPEND cases
    "add_test([=[${suite}]=] [=[${program}]=] [=[--gtest_filter=${suite}.*]=])\n"
    "set_tests_properties([=[${suite}]=] PROPERTIES LABELS \"${labels}\" COST ${tests_${suite}} "
    "${skip}ENVIRONMENT OMP_WAIT_POLICY=passive TIMEOUT 600)\n")
endforeach()
file(WRITE ${output} "${cases}")
