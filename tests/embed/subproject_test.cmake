# cmake -Dbuild=DIR -Dsource=DIR -Dcompiler=CXX -Dlibtorch=DIR -P subproject_test.cmake
#
# Configures a project that adds Braid as a subdirectory, and compiles its program.
cmake_minimum_required(VERSION 3.25)

set(work ${build}/subproject)
file(REMOVE_RECURSE ${work})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${source}/tests/embed/subproject -B ${work} -G Ninja
  -Dbraid=${source} -DCMAKE_CXX_COMPILER=${compiler} -DLibTorch_ROOT_DIR=${libtorch}
  COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
# The program's file alone: the library takes minutes.
execute_process(COMMAND ${CMAKE_COMMAND} --build ${work} --target CMakeFiles/outer.dir${source}/examples/embed/main.cc.o
  COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${work} --prefix ${work}/installed
  COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
if(EXISTS ${work}/installed/include/braid OR EXISTS ${work}/installed/share/braid)
  message(FATAL_ERROR "Braid is installed with a project that did not ask for that")
endif()
