# SPDX-License-Identifier: Apache-2.0
# How every target of gflow is compiled: language level, warnings, hardening, sanitizers.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

find_program(GFLOW_CCACHE ccache)
if(GFLOW_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${GFLOW_CCACHE})
endif()

# Most of a compilation is reading headers: files of one module are compiled eight at a time, which takes a
# fifth of the time. -DGFLOW_UNITY=OFF compiles each alone, as `./dev check --full` does. The more at a time the
# less work, the more memory, and the longer after a change: `./dev test` takes 32 where nobody changes anything,
# so names of one module have to differ.
option(GFLOW_UNITY "Compile the files of a module together" ON)
set(GFLOW_UNITY_FILES 8 CACHE STRING "How many files of a module are compiled together")
set(CMAKE_UNITY_BUILD ${GFLOW_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE ${GFLOW_UNITY_FILES})

find_program(GFLOW_MOLD mold)
if(GFLOW_MOLD AND (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1))
  add_link_options(-fuse-ld=mold)
endif()

option(GFLOW_WERROR "Warnings are errors: for developers and continuous integration" OFF)
set(GFLOW_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")

add_library(gflow_compile INTERFACE)
target_compile_options(gflow_compile INTERFACE
  -Wall -Wextra -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wformat=2
  $<$<BOOL:${GFLOW_WERROR}>:-Werror>
  # Tests compiled together each have a Case of their own.
  $<$<NOT:$<BOOL:$<TARGET_PROPERTY:GFLOW_TEST>>>:-Wshadow>
  -Wno-missing-field-initializers  # GCC 12 asks for members a designated initializer may leave out
  # GCC 12 warns of its own std::string::insert at -O3 (GCC bug 105651)
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # std::stable_sort of libstdc++ 12 uses what it calls deprecated.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  -fno-omit-frame-pointer -fstack-protector-strong)
target_compile_definitions(gflow_compile INTERFACE _GNU_SOURCE)
if(NOT GFLOW_SANITIZE)
  # What a program does not call is left out of it: half of gbatch, which each submission loads.
  target_compile_options(gflow_compile INTERFACE -ffunction-sections -fdata-sections)
endif()
if(GFLOW_SANITIZE)
  target_compile_options(gflow_compile INTERFACE -fsanitize=${GFLOW_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(gflow_compile INTERFACE -fsanitize=${GFLOW_SANITIZE})
  # Three checks at every access by pointer, a quarter of g++'s time here: the address sanitizer stops at what the
  # first two would find, and the fuzzers' build has all of them.
  if(GFLOW_SANITIZE MATCHES "address")
    target_compile_definitions(gflow_compile INTERFACE GFLOW_ADDRESS_SANITIZER)  # clang 19 has no macro of its own
    target_compile_options(gflow_compile INTERFACE -fno-sanitize=null,object-size,alignment
      # clang's asks the kernel through a pipe whether an object is there, which fails where tests leave no descriptors.
      $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=vptr>)
  endif()
  # What g++ concludes from code that sanitizers instrument is often wrong, as its manual says of them.
  target_compile_options(gflow_compile INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized
    -Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=stringop-overread
    -Wno-error=free-nonheap-object -Wno-error=use-after-free -Wno-error=dangling-pointer>)
  if(GFLOW_SANITIZE MATCHES "thread")
    # g++ says of Asio's fences that the sanitizer does not see them; what Asio orders by them it
    # also orders by locks.
    target_compile_options(gflow_compile INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
endif()
if(GFLOW_FUZZ)
  # Coverage for the fuzzer in every library, and the sanitizers that make a mistake a crash.
  target_compile_options(gflow_compile INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  target_link_options(gflow_compile INTERFACE -fsanitize=address,undefined)
endif()

# What is loaded into programs that are not sanitized, and these.
add_library(gflow_unsanitized INTERFACE)
target_link_libraries(gflow_unsanitized INTERFACE gflow_compile gflow_no_sanitizer)
add_library(gflow_no_sanitizer INTERFACE)
if(GFLOW_SANITIZE OR GFLOW_FUZZ)
  target_compile_options(gflow_no_sanitizer INTERFACE -fno-sanitize=all)
  target_link_options(gflow_no_sanitizer INTERFACE -fno-sanitize=all)
endif()
