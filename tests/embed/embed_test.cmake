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

# Runs what should fail with output that matches `pattern`.
function(refuse what pattern)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(status EQUAL 0 OR NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "${what} should fail for '${pattern}' (${status}):\n${output}")
  endif()
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

# A program that lays out the standard library in another way would crash: it does not compile.
foreach(other _GLIBCXX_DEBUG _GLIBCXX_USE_CXX11_ABI=0)
  refuse("compilation with ${other}" "libbraid.so is compiled with" ${compiler} -std=c++20
    -fsyntax-only -D${other} -I${work}/moved/include ${source}/examples/embed/main.cc)
endforeach()

# The package is found only with the LibTorch that the library loads.
file(COPY ${work}/moved/lib/cmake/Braid DESTINATION ${work}/alone)
file(READ ${work}/alone/Braid/BraidConfig.cmake config)
string(REGEX REPLACE "(Braid_LIBTORCH )\"[^\"]+\"" "\\1\"/nowhere/torch\"" config "${config}")
file(WRITE ${work}/alone/Braid/BraidConfig.cmake "${config}")
refuse("find_package without LibTorch" "from[ \n]+/nowhere/torch" ${CMAKE_COMMAND}
  -S ${source}/examples/embed -B ${work}/without -G Ninja -DBraid_DIR=${work}/alone/Braid
  -DCMAKE_CXX_COMPILER=${compiler})

# Braid is one library: a component that somebody asks for is named.
file(WRITE ${work}/parts/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(parts LANGUAGES CXX)
find_package(Braid REQUIRED COMPONENTS Foo)")
refuse("find_package of a component" "no component[ \n]+'Foo'" ${CMAKE_COMMAND}
  -S ${work}/parts -B ${work}/parts/build -G Ninja -DCMAKE_PREFIX_PATH=${work}/moved
  -DCMAKE_CXX_COMPILER=${compiler})

# The same program by pkg-config, where that is.
find_program(pkg_config pkg-config)
if(pkg_config)
  set(ENV{PKG_CONFIG_PATH} ${work}/moved/lib/pkgconfig)
  run("pkg-config" ${pkg_config} --cflags --libs braid)
  separate_arguments(words UNIX_COMMAND "${output}")
  run("compile with pkg-config's flags" ${compiler} -std=c++20 ${source}/examples/embed/main.cc ${words}
    -Wl,-rpath,${work}/moved/lib -o ${work}/by-pkg-config)
  run("embed by pkg-config" ${work}/by-pkg-config ${model} "a red circle" ${work}/again.ppm)
endif()

# Packages of two kinds: what runs, with its licence, and what compiles against it.
foreach(component Runtime Development)
  run("install ${component}" ${CMAKE_COMMAND} --install ${build} --component ${component}
    --prefix ${work}/${component})
  file(GLOB_RECURSE files RELATIVE ${work}/${component} ${work}/${component}/*)
  set(${component} "${files}")
endforeach()
foreach(pattern bin/braid libbraid.so.[0-9.]+ LICENSE share/braid/models/demo)
  if(NOT Runtime MATCHES "${pattern}" OR Development MATCHES "${pattern}")
    message(FATAL_ERROR "${pattern} should be of Runtime alone")
  endif()
endforeach()
foreach(pattern include/braid/braid.h BraidConfig.cmake braid.pc "libbraid.so(;|$)")
  if(NOT Development MATCHES "${pattern}" OR Runtime MATCHES "${pattern}")
    message(FATAL_ERROR "${pattern} should be of Development alone")
  endif()
endforeach()
