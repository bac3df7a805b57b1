# Compiles all of Braid with the torch of this Python, if it has one that is new enough.

# In pip's isolated environment only -I sees the packages of the Python that it installs for.
if(NOT BRAID_TORCH)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -I -c
      "from importlib.util import find_spec; s = find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE BRAID_TORCH OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  # One that is too old, or has no development files, is no obstacle to building.
  file(STRINGS ${root}/CMakeLists.txt oldest REGEX "^find_package\\(LibTorch ")
  string(REGEX MATCH "[0-9][0-9.]*" oldest "${oldest}")
  include("${BRAID_TORCH}/share/cmake/Torch/TorchConfigVersion.cmake" OPTIONAL)
  if(BRAID_TORCH AND PACKAGE_VERSION VERSION_LESS oldest) # without a version, too
    if(NOT PACKAGE_VERSION)
      set(PACKAGE_VERSION "without its development files")
    endif()
    message(WARNING "The torch in ${BRAID_TORCH} is ${PACKAGE_VERSION}, but Braid needs ${oldest} or later. braid_engine is "
      "built with the LibTorch that ./setup fetches, and refuses to be imported beside another torch.")
    set(BRAID_TORCH "")
  endif()
  unset(PACKAGE_VERSION) # FindLibTorch.cmake asks again
endif()
if(BRAID_TORCH)
  set(LibTorch_ROOT_DIR ${BRAID_TORCH} CACHE PATH "LibTorch")
endif()

# GPU kernels need a compiler for them. -DBRAID_GPU=cuda says that there must be one.
if(NOT DEFINED BRAID_GPU AND BRAID_TORCH)
  foreach(gpu cuda hip)
    if(EXISTS ${BRAID_TORCH}/lib/libtorch_${gpu}.so)
      include(CheckLanguage)
      string(TOUPPER ${gpu} language)
      check_language(${language})
      if(CMAKE_${language}_COMPILER)
        set(BRAID_GPU ${gpu} CACHE STRING "GPU backend")
      else()
        message(WARNING "braid_engine is built for CPUs only: there is no compiler for ${language}. "
          "Set CUDACXX or HIPCXX to one and install again for GPUs.")
      endif()
    endif()
  endforeach()
endif()

set(BRAID_DEVELOP OFF CACHE BOOL "Build the tests")
set(BRAID_INSTALL ON CACHE BOOL "Have rules that install Braid")  # the wheel has its program and models
set(BRAID_WERROR AUTO CACHE STRING "Treat warnings as errors")
add_subdirectory(${root} braid)
include(GNUInstallDirs)
# A wheel has no symbolic links, which versions of a library are. Its name alone is what the module looks
# for: without a SONAME that would be its path in the build folder.
set_property(TARGET braid PROPERTY VERSION)
set_property(TARGET braid PROPERTY SOVERSION)
file(REAL_PATH ${LibTorch_ROOT_DIR} libtorch)
file(STRINGS ${libtorch}/share/cmake/Torch/TorchConfigVersion.cmake line REGEX "set\\(PACKAGE_VERSION")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" libtorch_version "${line}")
# Beside torch's package, wherever both are installed; then where it was built.
set_target_properties(braid PROPERTIES INSTALL_RPATH "$ORIGIN/../../torch/lib;${libtorch}/lib")
set_target_properties(braid_engine PROPERTIES INSTALL_RPATH "$ORIGIN/../../torch/lib;${libtorch}/lib")
