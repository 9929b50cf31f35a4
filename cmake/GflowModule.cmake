# SPDX-License-Identifier: Apache-2.0
# gflow_module(NAME [PURE] [DEPS module...] [LIBS target...])
#   A layer: every *.cpp in src/NAME becomes the library gflow_NAME, every *_test.cpp beside it the
#   test program NAME_test. DEPS are the only modules it may include; PURE forbids files, clocks,
#   threads, environment and randomness. tools/check_layers.py reads these very calls.
#
# gflow_program(NAME SOURCES file... DEPS module...)
#   A program in bin/.
#
# gflow_preload(NAME OUTPUT file SOURCES file... DEPS module...)
#   A layer that is loaded into other people's programs before all else: bin/file, with nothing to find but a C
#   library of any age. SOURCES are what it has of other modules, compiled for it; src/NAME/exports.map what others see of it.
function(gflow_module name)
  cmake_parse_arguments(M "PURE" "" "DEPS;LIBS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${dir}/*.h)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main|_main)\\.cpp$")

  list(TRANSFORM M_DEPS PREPEND gflow_ OUTPUT_VARIABLE deps)
  if(sources)
    add_library(gflow_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(gflow_${name} PUBLIC gflow_compile)
  else()
    add_library(gflow_${name} INTERFACE)
    set(scope INTERFACE)
    target_link_libraries(gflow_${name} INTERFACE gflow_compile)
  endif()
  target_link_libraries(gflow_${name} ${scope} ${deps} ${M_LIBS})
  target_include_directories(gflow_${name} ${scope} ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
  if(headers)
    target_sources(gflow_${name} ${scope} FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}/src FILES ${headers})
  endif()

  if(GFLOW_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE gflow_${name} GTest::gtest GTest::gtest_main rapidcheck)
    set_target_properties(${name}_test PROPERTIES GFLOW_TEST ON)
    target_compile_definitions(${name}_test PRIVATE GFLOW_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
    add_test(NAME unit/${name} COMMAND ${name}_test --gtest_brief=1)
  endif()
endfunction()

function(gflow_program name)
  cmake_parse_arguments(P "" "" "SOURCES;DEPS" ${ARGN})
  list(TRANSFORM P_DEPS PREPEND gflow_ OUTPUT_VARIABLE deps)
  add_executable(${name} ${P_SOURCES})
  target_link_libraries(${name} PRIVATE gflow_compile ${deps})
endfunction()

function(gflow_preload name)
  cmake_parse_arguments(P "" "OUTPUT" "SOURCES;DEPS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${name})
  string(REGEX REPLACE "^lib|\\.so$" "" target ${P_OUTPUT})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  add_library(${target} SHARED ${sources} ${P_SOURCES})
  target_link_libraries(${target} PRIVATE gflow_unsanitized)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE
    -fvisibility=hidden -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections -ftls-model=initial-exec
    -include ${dir}/glibc_versions.h)
  # libdl and libpthread are there for C libraries that are not one file yet.
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc
    -Wl,--no-as-needed,-l:libdl.so.2,-l:libpthread.so.0,--as-needed,--gc-sections
    -Wl,--version-script=${dir}/exports.map)
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${P_OUTPUT} SUFFIX "" UNITY_BUILD OFF
    LINK_DEPENDS ${dir}/exports.map LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
endfunction()
