# NCCL, or RCCL if LibTorch was built for ROCm: the copy beside LibTorch's wheel, which is the one loaded
# at run time, else the system's.
#
#   NCCL::NCCL
set(wheels ${LibTorch_ROOT_DIR}/../nvidia)
find_path(NCCL_INCLUDE_DIR NAMES nccl.h rccl/rccl.h
  HINTS ${wheels}/nccl/include PATHS /usr/local/cuda/include /opt/rocm/include)
find_library(NCCL_LIBRARY NAMES libnccl.so.2 nccl rccl
  HINTS ${wheels}/nccl/lib PATHS /usr/local/cuda/lib64 /opt/rocm/lib)
file(GLOB runtimes ${wheels}/cu*/include)
find_path(NCCL_RUNTIME_INCLUDE_DIR NAMES cuda_runtime_api.h hip/hip_runtime_api.h
  HINTS ${runtimes} PATHS /usr/local/cuda/include /opt/rocm/include)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL
  REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR NCCL_RUNTIME_INCLUDE_DIR)

# RCCL has the same names in a different header.
if(NCCL_FOUND AND EXISTS ${NCCL_INCLUDE_DIR}/rccl/rccl.h)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/rccl/nccl.h CONTENT "#include <rccl/rccl.h>\n")
  set(alias ${PROJECT_BINARY_DIR}/rccl)
endif()

if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
  add_library(NCCL::NCCL UNKNOWN IMPORTED)
  set_target_properties(NCCL::NCCL PROPERTIES
    IMPORTED_LOCATION ${NCCL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${alias};${NCCL_INCLUDE_DIR};${NCCL_RUNTIME_INCLUDE_DIR}")
endif()
