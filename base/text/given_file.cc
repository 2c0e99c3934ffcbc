#include "base/text/given_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/fd.h"

namespace hvd::text {

absl::StatusOr<std::string> ReadGivenFile(const std::string& path, size_t most_mib) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return absl::NotFoundError(std::strerror(errno));
  std::string text;
  char buffer[64 << 10];
  while (text.size() <= most_mib << 20) {
    const ssize_t got = read(file.get(), buffer, sizeof(buffer));
    if (got == 0) return text;
    // A directory can be opened, and fails only here.
    if (got < 0 && errno != EINTR) return absl::NotFoundError(std::strerror(errno));
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  return absl::InvalidArgumentError(absl::StrCat("it is longer than ", most_mib, " MiB"));
}

}  // namespace hvd::text
