# Writes the ctest cases of a test program, one a suite: a program with LibTorch takes 0.2 s to
# start, and there are hundreds of tests.
#   cmake -Dprogram=FILE -Dlabel=NAME -Doutput=FILE -P list_suites.cmake
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${program} --gtest_list_tests OUTPUT_VARIABLE list
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${list}")
set(cases "")
foreach(line ${lines})
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.( |$)")
    set(suite ${CMAKE_MATCH_1})
    set(labels ${label})
    if(suite MATCHES Slow)
      list(APPEND labels slow)
    endif()
    string(APPEND cases "add_test([=[${suite}]=] [=[${program}]=] [=[--gtest_filter=${suite}.*]=])\n"
      "set_tests_properties([=[${suite}]=] PROPERTIES LABELS \"${labels}\")\n")
  endif()
endforeach()
file(WRITE ${output} "${cases}")
