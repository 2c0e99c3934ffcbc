// Debian's libgloo-dev forgets to install this header, which its own gloo/transport/tcp/{pair,context}.h include. Here is what they need in
// order to be compiled: the names, and the size of the one class that they hold by value. Nothing here is ever called: all
// code that uses these classes is in libgloo.so. Users check that the sizes of Pair and Context are the library's.
#ifndef THIRD_PARTY_SHIMS_GLOO_GLOO_COMMON_MEMORY_H_
#define THIRD_PARTY_SHIMS_GLOO_GLOO_COMMON_MEMORY_H_

#include <functional>
#include <memory>

namespace gloo {

template <typename T>
class NonOwningPtr;

template <typename T>
class WeakNonOwningPtr {
 private:
  friend class NonOwningPtr<T>;
  std::weak_ptr<T> pointer_;
};

// While there is one, whoever destroys what it points to waits.
template <typename T>
class NonOwningPtr {
 public:
  NonOwningPtr() = default;
  explicit NonOwningPtr(const WeakNonOwningPtr<T>& weak) : pointer_(weak.pointer_.lock()) {}
  explicit operator bool() const noexcept { return pointer_ != nullptr; }

 private:
  std::shared_ptr<T> pointer_;
};

}  // namespace gloo

#endif  // THIRD_PARTY_SHIMS_GLOO_GLOO_COMMON_MEMORY_H_
