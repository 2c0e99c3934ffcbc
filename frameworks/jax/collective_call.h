// The translation of a collective of a jitted program from XLA's call frame to the runtime's requests.
#ifndef FRAMEWORKS_JAX_COLLECTIVE_CALL_H_
#define FRAMEWORKS_JAX_COLLECTIVE_CALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "frameworks/jax/xla_ffi_abi.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace hvd::frameworks::jax {

// The requests for the runtime, which point into this object and into XLA's buffers: both must stay
// as long as they are used. Attributes, all of them required:
//   - op, reduction, root_rank, process_set: integers as in hvd_c_api.h
//   - prescale, postscale: double
//   - name: of the operation; of a group's tensors "<name>_<1..n>of<n>"
//   - is_group: 0 or 1
// Each of the tensors is an argument and a result at the same index. One more result, of a byte,
// comes after them; an argument after them is not read. XLA orders calls by these two.
class CollectiveCall {
 public:
  // Returns what is wrong in one line, or "".
  std::string Read(const XlaCallFrame& frame);

  const std::vector<hvd_request>& requests() const { return requests_; }
  int32_t process_set() const { return process_set_; }

  // Puts what the runtime gives for tensor `index` where XLA wants it. Returns what is wrong in one
  // line, or "".
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
