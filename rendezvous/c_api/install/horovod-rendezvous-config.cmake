# find_package(horovod-rendezvous), then target_link_libraries(... horovod::rendezvous): the C API and the C++ classes of the rendezvous server.
# Everything is found from where this file is, so the whole may be moved.
get_filename_component(_horovod_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET horovod::rendezvous)
  add_library(horovod::rendezvous SHARED IMPORTED)
  set_target_properties(horovod::rendezvous PROPERTIES
    IMPORTED_LOCATION "${_horovod_prefix}/lib/libhvd_rendezvous.so"
    IMPORTED_SONAME "libhvd_rendezvous.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_horovod_prefix}/include")
  if(CMAKE_CXX_COMPILER_LOADED)
    set_property(TARGET horovod::rendezvous PROPERTY INTERFACE_COMPILE_FEATURES cxx_std_17)
  endif()
endif()
unset(_horovod_prefix)
