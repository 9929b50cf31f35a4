# SPDX-License-Identifier: Apache-2.0
# gflow_kubelet_api: what a kubelet and those who give its containers devices say to each other, by gRPC, made of the files api/*.proto.
# Without gRPC (libgrpc++-dev, protobuf-compiler-grpc) there is none, and gflow-device-plugin and gflow-dra-driver are not built.
# By names: pkg-config needs a quarter of a minute for all that a static library of it would need.
find_path(GFLOW_GRPC_HEADERS grpcpp/grpcpp.h)
find_library(GFLOW_GRPC grpc++)
find_library(GFLOW_GPR gpr)
find_library(GFLOW_ABSL_SYNCHRONIZATION absl_synchronization) # what its headers call of others, if the compiler does not inline it
find_library(GFLOW_PROTOBUF protobuf)
find_program(GFLOW_PROTOC protoc)
find_program(GFLOW_GRPC_PLUGIN grpc_cpp_plugin)
if(NOT GFLOW_GRPC_HEADERS OR NOT GFLOW_GRPC OR NOT GFLOW_GPR OR NOT GFLOW_PROTOBUF OR NOT GFLOW_PROTOC OR NOT GFLOW_GRPC_PLUGIN)
  message(STATUS "gflow-device-plugin and gflow-dra-driver are not built: no gRPC here (libgrpc++-dev, protobuf-compiler-grpc)")
  return()
endif()

set(made ${CMAKE_BINARY_DIR}/kubelet_api)
file(MAKE_DIRECTORY ${made})
set(sources "")
foreach(path deviceplugin/api/device_plugin deviceplugin/api/pod_resources dra/api/dra dra/api/dra_health dra/api/plugin_registration)
  # While it is configured, as other generated files are: what looks at sources without building them finds these headers.
  set(proto ${CMAKE_SOURCE_DIR}/src/${path}.proto)
  cmake_path(GET proto STEM api)
  cmake_path(GET proto PARENT_PATH protos)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${proto})
  if(${proto} IS_NEWER_THAN ${made}/${api}.grpc.pb.cc)
    execute_process(
      COMMAND ${GFLOW_PROTOC} -I${protos} --cpp_out=${made} --grpc_out=${made}
              --plugin=protoc-gen-grpc=${GFLOW_GRPC_PLUGIN} ${proto}
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
  list(APPEND sources ${made}/${api}.pb.cc ${made}/${api}.grpc.pb.cc)
endforeach()
add_library(gflow_kubelet_api STATIC ${sources})
target_include_directories(gflow_kubelet_api SYSTEM PUBLIC ${made})
target_link_libraries(gflow_kubelet_api PUBLIC ${GFLOW_GRPC} ${GFLOW_GPR} ${GFLOW_PROTOBUF}
  $<$<BOOL:${GFLOW_ABSL_SYNCHRONIZATION}>:${GFLOW_ABSL_SYNCHRONIZATION}>)
target_compile_options(gflow_kubelet_api PRIVATE -w)
set_target_properties(gflow_kubelet_api PROPERTIES UNITY_BUILD OFF)
