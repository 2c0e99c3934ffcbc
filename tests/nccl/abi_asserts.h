// Static assertions that compare declarations of this project with those of a real header.
#ifndef TESTS_NCCL_ABI_ASSERTS_H_
#define TESTS_NCCL_ABI_ASSERTS_H_

#include <type_traits>

#define SAME_VALUE(ours, theirs) \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs), #theirs)
#define SAME_LAYOUT(ours, theirs) \
  static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs), #theirs)

// The name in this project for a type of the real header.
template <typename Theirs>
struct Ours {
  using type = Theirs;
};
// Defines this project's names for a type of the real header and for a pointer to it.
#define IS(theirs, ours) \
  template <>            \
  struct Ours<theirs> {  \
    using type = ours;   \
  };                     \
  template <>            \
  struct Ours<theirs*> { \
    using type = ours*;  \
  }

template <typename Theirs>
struct InOurNames;
template <typename Result, typename... Arguments>
struct InOurNames<Result(Arguments...)> {
  using type = typename Ours<Result>::type (*)(typename Ours<Arguments>::type...);
};

#define SAME_SIGNATURE(table, ours, theirs) \
  static_assert(std::is_same_v<decltype(table::ours), InOurNames<decltype(theirs)>::type>, #theirs)

#endif  // TESTS_NCCL_ABI_ASSERTS_H_
