// A scratch buffer that is reused between calls: page faults in fresh memory would cost more than
// most operations.
#ifndef COLLECTIVES_LINKS_SCRATCH_H_
#define COLLECTIVES_LINKS_SCRATCH_H_

#include <cstddef>
#include <memory>

namespace hvd::collectives::links {

// Not safe for concurrent use.
class Scratch {
 public:
  // At least `bytes` bytes with any content, valid until the next call.
  char* Get(size_t bytes) {
    if (bytes > capacity_) {
      data_.reset(new char[bytes]);
      capacity_ = bytes;
    }
    return data_.get();
  }

 private:
  std::unique_ptr<char[]> data_;
  size_t capacity_ = 0;
};

}  // namespace hvd::collectives::links

#endif  // COLLECTIVES_LINKS_SCRATCH_H_
