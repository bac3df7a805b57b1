# cmake -Dbuild=DIR -Dsource=DIR -Dcompiler=CXX -Dflags=FLAGS -P embed_test.cmake
cmake_minimum_required(VERSION 3.25)

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Installed under one name and used under another: the tree can be moved.
set(work ${build}/embed)
file(REMOVE_RECURSE ${work})
run("install" ${CMAKE_COMMAND} --install ${build} --prefix ${work}/installed)
file(RENAME ${work}/installed ${work}/moved)
set(model ${work}/moved/share/braid/models/demo)

run("configure" ${CMAKE_COMMAND} -S ${source}/examples/embed -B ${work}/build -G Ninja
  -DCMAKE_PREFIX_PATH=${work}/moved -DCMAKE_CXX_COMPILER=${compiler}
  "-DCMAKE_CXX_FLAGS=${flags} -Wall -Wextra -Werror")
run("build" ${CMAKE_COMMAND} --build ${work}/build)
run("embed" ${work}/build/embed ${model} "a red circle on a blue background" ${work}/embed.ppm)
if(NOT output MATCHES "128x128.*a preview of 16x16.*step 4/4")
  message(FATAL_ERROR "embed reported no size, preview or last step:\n${output}")
endif()
file(READ ${work}/embed.ppm header LIMIT 15)
if(NOT header MATCHES "^P6 128 128 255")
  message(FATAL_ERROR "embed wrote no 128x128 picture")
endif()

# The installed program finds the installed model by itself.
run("braid" ${work}/moved/bin/braid generate -q --steps 1 -o ${work}/braid.png "a red circle")

# The library exports nothing but its interface.
run("nm" nm --dynamic --defined-only --demangle ${work}/moved/lib/libbraid.so)
string(REGEX MATCHALL "[^\n]+" symbols "${output}")
list(FILTER symbols EXCLUDE REGEX " [A-Z] (typeinfo (name )?for |vtable for )?braid::")
if(symbols)
  message(FATAL_ERROR "libbraid.so shows more than the interface:\n${symbols}")
endif()
