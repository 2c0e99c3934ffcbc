// The translation of a collective in a jitted program from XLA's call frame to runtime requests.
#ifndef FRAMEWORKS_JAX_COLLECTIVE_CALL_H_
#define FRAMEWORKS_JAX_COLLECTIVE_CALL_H_

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
  // Reads the call frame. Returns an error in one line, or "".
  std::string Read(const XlaCallFrame& frame);

  const std::vector<hvd_request>& requests() const { return requests_; }
  int32_t process_set() const { return process_set_; }

  // Copies the runtime's result for tensor `index` into XLA's result buffer, unless it is there
  // already. Returns an error in one line, or "".
  std::string Take(int index, const hvd_tensor& result) const;

 private:
  std::string ReadTensors(const XlaCallFrame& frame, const hvd_request& common);

  std::string name_;
  int32_t process_set_ = 0;
  std::vector<std::string> names_;
  std::vector<hvd_request> requests_;
  std::vector<const XlaBuffer*> results_;
};

}  // namespace hvd::frameworks::jax

#endif  // FRAMEWORKS_JAX_COLLECTIVE_CALL_H_
