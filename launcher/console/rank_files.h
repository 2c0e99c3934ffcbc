// The files of --output-filename: DIR/rank.N/stdout and DIR/rank.N/stderr.
#ifndef LAUNCHER_CONSOLE_RANK_FILES_H_
#define LAUNCHER_CONSOLE_RANK_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd {

// Not thread-safe.
class RankFiles {
 public:
  // Makes the directories and empties the files of every rank; null if no directory is given.
  // Internal: one can't be made; says which and why.
  static absl::StatusOr<std::unique_ptr<RankFiles>> Create(const std::string& directory,
                                                           int num_proc);
  ~RankFiles();
  RankFiles(const RankFiles&) = delete;
  RankFiles& operator=(const RankFiles&) = delete;

  // Appends.   Internal: says which file and why; what did not fit is lost.
  absl::Status Write(int rank, bool is_stderr, absl::string_view data);

 private:
  struct File {
    std::string path;
    int fd = -1;
  };
  RankFiles() = default;
  absl::Status Open(const std::string& path);

  std::vector<File> files_;  // stdout and stderr of rank 0, of rank 1, ...
};

}  // namespace hvd

#endif  // LAUNCHER_CONSOLE_RANK_FILES_H_
