// The files of --output-filename: DIR/rank.N/stdout and DIR/rank.N/stderr. With a size limit they
// are rotated: a full file becomes stdout.1, the one before that stdout.2, and so on.
#ifndef BASE_CONSOLE_RANK_FILES_H_
#define BASE_CONSOLE_RANK_FILES_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/fd.h"

namespace hvd::console {

// Not thread-safe.
class RankFiles {
 public:
  // Whether ranks beyond the first `num_proc` may come, as in elastic jobs.
  enum class Ranks { kFixed, kMayGrow };

  struct Rotation {
    int64_t bytes = 0;  // a file that would become larger is full; 0: none ever is
    int kept = 0;       // older files
  };

  // Makes the directories and empties the files of every rank; with rotation also the rotated files
  // of an earlier job. Null if no directory is given.
  // Errors:
  //   - Internal: a directory or file can't be made; says which and why.
  static absl::StatusOr<std::unique_ptr<RankFiles>> Create(const std::string& directory,
                                                           int num_proc, Ranks ranks,
                                                           Rotation rotation);
  static absl::StatusOr<std::unique_ptr<RankFiles>> Create(const std::string& directory,
                                                           int num_proc,
                                                           Ranks ranks = Ranks::kFixed) {
    return Create(directory, num_proc, ranks, Rotation());
  }
  // Appends; the files of a rank that comes later start empty. `data` is never divided between two
  // files.
  // Errors:
  //   - Internal: a file can't be written; says which and why. What did not fit is lost.
  absl::Status Write(int rank, bool is_stderr, absl::string_view data);

 private:
  struct File {
    std::string path;
    Fd fd;
    int64_t bytes = 0;
  };
  RankFiles(std::string directory, int num_proc, Ranks ranks, Rotation rotation)
      : directory_(std::move(directory)), num_proc_(num_proc), ranks_(ranks), rotation_(rotation) {}
  absl::Status OpenRank(int rank);
  static absl::Status Open(const std::string& path, File* file);
  absl::Status Rotate(File* file);

  const std::string directory_;
  const int num_proc_;
  const Ranks ranks_;
  const Rotation rotation_;
  std::map<int, std::array<File, 2>> files_;  // by rank: stdout, stderr
};

}  // namespace hvd::console

#endif  // BASE_CONSOLE_RANK_FILES_H_
