# The library for other programs, and the installed tree: bin/braid, lib/libbraid.so, include/braid, lib/cmake/Braid,
# lib/pkgconfig/braid.pc, share/braid/models, share/doc/braid. Packages of two kinds can be made of it: component
# Runtime, and component Development for what compiles against it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# All folders in one file that exports only what BRAID_API marks.
add_library(braid SHARED $<TARGET_OBJECTS:braid_pipeline>)
add_library(Braid::braid ALIAS braid)
set_target_properties(braid PROPERTIES
  LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
target_include_directories(braid INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(braid INTERFACE cxx_std_20)
target_link_libraries(braid PRIVATE braid_pipeline)
target_link_options(braid PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map -Wl,--no-undefined)

if(NOT BRAID_INSTALL)
  return()
endif()

# What is installed has its run path from the start: in place of one that is to be replaced, CMake writes a path that
# ends in an empty element, which is the current folder. CMake leaves a LibTorch inside this project out: it is named.
set(installed braid braid_program braid_engine)
if(TARGET braid_mpi)
  list(APPEND installed braid_mpi)
endif()
if(NOT CMAKE_SKIP_INSTALL_RPATH)
  set_property(TARGET braid braid_engine APPEND PROPERTY INSTALL_RPATH ${CMAKE_BUILD_RPATH} ${LibTorch_LIBRARY_DIRS})
  set_target_properties(${installed} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
endif()

install(TARGETS braid LIBRARY COMPONENT Runtime NAMELINK_COMPONENT Development)
install(TARGETS braid_program braid_engine RUNTIME COMPONENT Runtime)
if(TARGET braid_mpi)
  install(TARGETS braid_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/braid COMPONENT Runtime)
endif()
install(DIRECTORY include/braid TYPE INCLUDE COMPONENT Development)
install(FILES LICENSE TYPE DOC COMPONENT Runtime)
# Folders that several published models share are links, which a wheel leaves out: they are followed.
foreach(folder demo published)
  install(CODE "
    set(to \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/braid/models/${folder}\")
    file(REMOVE_RECURSE \"\${to}\")
    execute_process(COMMAND \"${CMAKE_COMMAND}\" -E copy_directory
      \"${PROJECT_SOURCE_DIR}/models/${folder}\" \"\${to}\" COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT Runtime)
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Braid)
configure_package_config_file(cmake/BraidConfig.cmake.in ${PROJECT_BINARY_DIR}/BraidConfig.cmake
  INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/BraidConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/BraidConfig.cmake ${PROJECT_BINARY_DIR}/BraidConfigVersion.cmake
  DESTINATION ${package} COMPONENT Development)

# A folder given by its whole path stays there when the tree is moved.
file(RELATIVE_PATH up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(folder LIBDIR INCLUDEDIR DATADIR)
  set(pc_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    set(pc_${folder} "${CMAKE_INSTALL_${folder}}")
  endif()
endforeach()
configure_file(cmake/braid.pc.in ${PROJECT_BINARY_DIR}/braid.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/braid.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT Development)
