#include "worker_runtime/engine/fusion_buffer.h"

#include <cstring>
#include <new>

namespace hvd {
namespace {

constexpr std::align_val_t kCacheLine{64};

}  // namespace

void FusionBuffer::Free::operator()(char* data) const { ::operator delete(data, kCacheLine); }

char* FusionBuffer::Reserve(size_t bytes) {
  if (bytes > capacity_) {
    data_.reset();
    data_.reset(static_cast<char*>(::operator new(bytes, kCacheLine)));
    capacity_ = bytes;
  }
  return data_.get();
}

void FusionBuffer::Unpack(absl::Span<const Stretch> pieces) const {
  const char* from = data_.get();
  for (const Stretch& piece : pieces) {
    if (piece.bytes > 0 && piece.data != nullptr) std::memcpy(piece.data, from, piece.bytes);
    from += piece.bytes;
  }
}

}  // namespace hvd
