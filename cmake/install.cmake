# The installed tree: bin/braid, lib/libbraid.so, include/braid, lib/cmake/Braid, share/braid/models.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The library for other programs: all folders in one file that exports only what BRAID_API marks.
add_library(braid SHARED $<TARGET_OBJECTS:braid_pipeline>)
set_target_properties(braid PROPERTIES
  LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
target_link_libraries(braid PRIVATE braid_pipeline)
target_link_options(braid PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map -Wl,--no-undefined)

install(TARGETS braid LIBRARY)
install(TARGETS braid_program braid_engine RUNTIME)
if(TARGET braid_mpi)
  install(TARGETS braid_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/braid)
endif()
install(DIRECTORY include/braid TYPE INCLUDE)
# Folders that several published models share are links, which a wheel leaves out: they are followed.
foreach(folder demo published)
  install(CODE "
    set(to \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/braid/models/${folder}\")
    file(REMOVE_RECURSE \"\${to}\")
    execute_process(COMMAND \"${CMAKE_COMMAND}\" -E copy_directory
      \"${PROJECT_SOURCE_DIR}/models/${folder}\" \"\${to}\" COMMAND_ERROR_IS_FATAL ANY)")
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Braid)
configure_package_config_file(cmake/BraidConfig.cmake.in ${PROJECT_BINARY_DIR}/BraidConfig.cmake
  INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/BraidConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/BraidConfig.cmake ${PROJECT_BINARY_DIR}/BraidConfigVersion.cmake
  DESTINATION ${package})
