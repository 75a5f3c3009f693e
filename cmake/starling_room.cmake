# How a room, a test and the package are made. One helper each; no room sets flags of its own
# except where it says why.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# Warnings and sanitizers, private to this project: never exported to users.
add_library(starling_flags INTERFACE)
target_compile_features(starling_flags INTERFACE cxx_std_20)
target_compile_options(starling_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${STARLING_WERROR}>:-Werror>)
if(STARLING_SANITIZE)
  target_compile_options(starling_flags INTERFACE
    -fsanitize=${STARLING_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Null is caught anyway; the two cost a third of the time that coroutines take to compile.
  target_compile_options(starling_flags INTERFACE -fno-sanitize=null,vptr)
  target_link_options(starling_flags INTERFACE -fsanitize=${STARLING_SANITIZE})
endif()

# What is tested is optimised; the tests themselves need not be. With sanitizers even a little of it
# doubles the time that they take to compile.
set(test_options $<$<CONFIG:Release>:-O1>)
if(STARLING_SANITIZE)
  set(test_options -O0)
endif()

# Headers that most sources read, compiled once: for builds that only a machine waits for. Others go
# without, so that a source that lacks an include is noticed.
if(STARLING_PCH)
  set(common_headers <fmt/format.h> <algorithm> <chrono> <coroutine> <functional> <map> <memory>
    <optional> <set> <span> <string> <variant> <vector>)
  file(WRITE ${PROJECT_BINARY_DIR}/nothing.cc "")
  find_package(fmt REQUIRED)
  find_package(GTest REQUIRED)
  add_library(starling_room_headers STATIC ${PROJECT_BINARY_DIR}/nothing.cc)
  set_target_properties(starling_room_headers PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(starling_room_headers PRIVATE fmt::fmt starling_flags)
  target_precompile_headers(starling_room_headers PRIVATE ${common_headers})
  add_library(starling_test_headers STATIC ${PROJECT_BINARY_DIR}/nothing.cc)
  target_link_libraries(starling_test_headers PRIVATE fmt::fmt GTest::gtest starling_flags)
  target_compile_options(starling_test_headers PRIVATE ${test_options})
  target_precompile_headers(starling_test_headers PRIVATE ${common_headers} <gtest/gtest.h>)
endif()
# starling_common_headers(TARGET room|test)
function(starling_common_headers target kind)
  if(STARLING_PCH)
    target_precompile_headers(${target} REUSE_FROM starling_${kind}_headers)
  endif()
endfunction()

# starling_room(NAME HEADERS … SOURCES … [ROOMS …] [PACKAGES …] [LINK …])
#   ROOMS     other rooms this one uses
#   PACKAGES  CMake packages a user of the installed room needs (found here as well)
#   LINK      their targets
# Makes the library starling::NAME, checks that its headers are self-contained, and exports it as
# the component NAME of the package.
function(starling_room name)
  cmake_parse_arguments(ROOM "" "" "HEADERS;SOURCES;ROOMS;PACKAGES;LINK" ${ARGN})
  foreach(package IN LISTS ROOM_PACKAGES)
    if(NOT ${package}_FOUND)
      find_package(${package} REQUIRED)
    endif()
  endforeach()
  if(NOT ROOM_SOURCES)
    message(FATAL_ERROR "room ${name} has no sources")
  endif()
  add_library(starling_${name} STATIC ${ROOM_SOURCES})
  add_library(starling::${name} ALIAS starling_${name})
  target_sources(starling_${name} PUBLIC FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ROOM_HEADERS})
  set_target_properties(starling_${name} PROPERTIES
    EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON VERIFY_INTERFACE_HEADER_SETS ON)
  target_compile_features(starling_${name} PUBLIC cxx_std_20)
  if(NOT name STREQUAL kernels)  # its sources are read once per instruction set
    starling_common_headers(starling_${name} room)
  endif()
  list(TRANSFORM ROOM_ROOMS PREPEND starling::)
  target_link_libraries(starling_${name} PUBLIC ${ROOM_ROOMS} ${ROOM_LINK}
    PRIVATE $<BUILD_INTERFACE:starling_flags>)
  list(TRANSFORM ROOM_ROOMS REPLACE "starling::" "")
  set_property(GLOBAL APPEND PROPERTY STARLING_COMPONENTS ${name})
  set_property(GLOBAL PROPERTY STARLING_ROOMS_OF_${name} "${ROOM_ROOMS}")
  set_property(GLOBAL PROPERTY STARLING_PACKAGES_OF_${name} "${ROOM_PACKAGES}")
  if(STARLING_INSTALL)
    install(TARGETS starling_${name} EXPORT starling-${name} FILE_SET HEADERS)
    install(EXPORT starling-${name} NAMESPACE starling::
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/starling FILE starling-${name}.cmake)
  endif()
endfunction()

# Where modules are built; installed they are in <libdir>/starling.
set(STARLING_MODULE_DIR ${PROJECT_BINARY_DIR}/modules)

# starling_module(NAME SOURCES … LINK …)
# Makes starling_NAME.so, which a program loads when it needs it (starling/comm/module.h): the one
# place where its foreign library is linked.
function(starling_module name)
  cmake_parse_arguments(MODULE "" "" "SOURCES;LINK" ${ARGN})
  add_library(starling_${name} MODULE ${MODULE_SOURCES})
  target_link_libraries(starling_${name} PRIVATE ${MODULE_LINK} starling_flags)
  target_include_directories(starling_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(starling_${name} PROPERTIES
    PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${STARLING_MODULE_DIR})
  if(STARLING_INSTALL)
    install(TARGETS starling_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/starling)
  endif()
endfunction()

# starling_test(NAME SOURCES … LINK … [TIMEOUT seconds] [HEAVY])
# One executable, one ctest entry per file of cases; a test that hangs is a failure.
#   HEAVY  several processes that compute and wait for each other: two such tests at once take longer
#          than one after the other
function(starling_test name)
  cmake_parse_arguments(TEST "HEAVY" "TIMEOUT" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LINK} GTest::gtest_main starling_flags)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${test_options})
  starling_common_headers(${name} test)
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT})
  if(TEST_HEAVY)
    set_tests_properties(${name} PROPERTIES PROCESSORS 2)
  endif()
endfunction()

# Writes starling-config.cmake: find_package(starling COMPONENTS sim) pulls in the rooms that sim
# uses, and the packages that those need, and nothing else.
function(starling_install_package)
  get_property(components GLOBAL PROPERTY STARLING_COMPONENTS)
  set(STARLING_TABLE "set(starling_components ${components})\n")
  foreach(name IN LISTS components)
    get_property(rooms GLOBAL PROPERTY STARLING_ROOMS_OF_${name})
    get_property(packages GLOBAL PROPERTY STARLING_PACKAGES_OF_${name})
    string(APPEND STARLING_TABLE "set(starling_rooms_of_${name} ${rooms})\n")
    string(APPEND STARLING_TABLE "set(starling_packages_of_${name} ${packages})\n")
  endforeach()
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/starling-config.cmake.in
    ${PROJECT_BINARY_DIR}/starling-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/starling)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/starling-config-version.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/starling-config.cmake
    ${PROJECT_BINARY_DIR}/starling-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/starling)
endfunction()
