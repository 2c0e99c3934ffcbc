#include "frameworks/tensorflow/done_callback.h"

#include <link.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hvd::frameworks::tensorflow {
namespace {

struct Search {
  const std::string& part;
  std::vector<CodeRange> found;
};

int AddCode(dl_phdr_info* library, size_t, void* context) {
  auto* const search = static_cast<Search*>(context);
  if (std::strstr(library->dlpi_name, search->part.c_str()) == nullptr) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const char* const begin = reinterpret_cast<const char*>(library->dlpi_addr + segment.p_vaddr);
    search->found.push_back({begin, begin + segment.p_memsz});
  }
  return 0;
}

// The layout of libstdc++'s std::function: 16 bytes for the callable, then pointers to its manager
// and its invoker.
constexpr size_t kFunctionBytes = 32;
constexpr size_t kManagerOffset = 16;
static_assert(sizeof(std::function<void()>) == kFunctionBytes);

}  // namespace

std::vector<CodeRange> CodeOf(const std::string& part) {
  Search search{part, {}};
  dl_iterate_phdr(AddCode, &search);
  return std::move(search.found);
}

std::function<void()> TakeDone(TF_AsyncOpKernelDoneCallback* done,
                               const std::vector<CodeRange>& code) {
  // Both pointers of a real std::function point into TensorFlow's code. If the object were another
  // type or had another layout, they would hardly both do so by chance.
  const char* functions[2];
  static_assert(kManagerOffset + sizeof(functions) == kFunctionBytes);
  std::memcpy(functions, reinterpret_cast<const char*>(done) + kManagerOffset, sizeof(functions));
  for (const char* function : functions) {
    const bool is_known = std::any_of(code.begin(), code.end(), [&](const CodeRange& range) {
      return function >= range.begin && function < range.end;
    });
    if (!is_known) return nullptr;
  }
  return std::move(*reinterpret_cast<std::function<void()>*>(done));
}

}  // namespace hvd::frameworks::tensorflow
