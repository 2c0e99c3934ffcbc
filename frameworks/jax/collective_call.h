// The translation of a collective in a jitted program from XLA's call frame to runtime requests.
#ifndef FRAMEWORKS_JAX_COLLECTIVE_CALL_H_
#define FRAMEWORKS_JAX_COLLECTIVE_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "frameworks/jax/xla_ffi_abi.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::frameworks::jax {

// One call: the runtime's requests, made from XLA's call frame. The requests point into this object
// and into XLA's buffers, so both must stay valid while the requests are used. The call has these
// attributes, all required:
//   - op, reduction, root_rank, process_set: integers as in hvd_c_api.h
//   - prescale, postscale: double
//   - name: the operation's name; the tensors of a group are named "<name>_<1..n>of<n>"
//   - is_group: 0 or 1
// Each tensor is an argument and a result at the same index. They are followed by one more result
// of one byte, and by an argument that is not read: passing one call's byte to the next makes XLA
// run the calls in that order.
class CollectiveCall {
 public:
  // Where XLA's buffers are.
  enum class Memory { kHost, kDevice };

  // Reads the call frame. Returns an error in one line, or "". The requests are for buffers in host
  // memory; a call whose buffers are on a device then needs UseDevice, or UseHost for each tensor.
  std::string Read(const XlaCallFrame& frame, Memory memory);

  const std::vector<hvd_request>& requests() const { return requests_; }
  int32_t process_set() const { return process_set_; }

  // Whether the runtime can run it in the memory of a device. The same on all ranks.
  bool IsForDevices() const;
  // Makes it a call on CUDA device `device`, whose tensors may be used after the CUDA event
  // `ready`.
  void UseDevice(int32_t device, void* ready);
  // Makes `copy` the input of tensor `index` and, if the result has the same shape, its result.
  void UseHost(int index, void* copy);

  // XLA's buffers of a tensor, and their sizes.
  const void* input_buffer(int index) const { return arguments_[index]->data; }
  size_t input_bytes(int index) const;
  void* result_buffer(int index) const { return results_[index]->data; }
  size_t result_bytes(int index) const;

  // Checks that the runtime's result for tensor `index` has the shape of XLA's result buffer.
  // Returns an error in one line, or "".
  std::string CheckShape(int index, const hvd_tensor& result) const;
  // Checks it, and copies the result into XLA's buffer, unless it is there already. REQUIRES: both
  // are in host memory. Returns an error in one line, or "".
  std::string Take(int index, const hvd_tensor& result) const;

 private:
  std::string ReadTensors(const XlaCallFrame& frame, const hvd_request& common);

  std::string name_;
  int32_t process_set_ = 0;
  std::vector<std::string> names_;
  std::vector<hvd_request> requests_;
  std::vector<const XlaBuffer*> arguments_;
  std::vector<const XlaBuffer*> results_;
};

}  // namespace hvd::frameworks::jax

#endif  // FRAMEWORKS_JAX_COLLECTIVE_CALL_H_
