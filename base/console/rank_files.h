// The output files of --output-filename: DIR/rank.N/stdout and DIR/rank.N/stderr. With a size limit
// they are rotated: a full file becomes stdout.1, the previous stdout.1 becomes stdout.2, and so
// on.
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
  // Whether ranks of `num_proc` and more may occur, as in elastic jobs.
  enum class Ranks { kFixed, kMayGrow };

  struct Rotation {
    int64_t bytes = 0;  // the size limit of a file; 0: no limit
    int kept = 0;       // number of older files
  };

  // Makes the directories and truncates the files of every rank; with rotation, also removes the
  // rotated files of an earlier job. Returns null if `directory` is empty.
  // Errors:
  //   - FailedPrecondition: another job writes to `directory`.
  //   - Internal: a directory or file can't be made; says which and why.
  static absl::StatusOr<std::unique_ptr<RankFiles>> Create(const std::string& directory,
                                                           int num_proc, Ranks ranks,
                                                           Rotation rotation);
  static absl::StatusOr<std::unique_ptr<RankFiles>> Create(const std::string& directory,
                                                           int num_proc,
                                                           Ranks ranks = Ranks::kFixed) {
    return Create(directory, num_proc, ranks, Rotation());
  }
  // Appends `data`, which is never split between two files. The files of a rank that appears later
  // start empty.
  // Errors:
  //   - Internal: a file can't be written; says which and why. The unwritten part is lost.
  absl::Status Write(int rank, bool is_stderr, absl::string_view data);

 private:
  struct File {
    std::string path;
    Fd fd;
    int64_t bytes = 0;
  };
  RankFiles(std::string directory, int num_proc, Ranks ranks, Rotation rotation)
      : directory_(std::move(directory)), num_proc_(num_proc), ranks_(ranks), rotation_(rotation) {}
  absl::Status Lock();
  absl::Status OpenRank(int rank);
  static absl::Status Open(const std::string& path, File* file);
  absl::Status Rotate(File* file);

  const std::string directory_;
  const int num_proc_;
  const Ranks ranks_;
  const Rotation rotation_;
  Fd lock_;                                   // an flock on the directory, while this exists
  std::map<int, std::array<File, 2>> files_;  // by rank: stdout, stderr
};

}  // namespace hvd::console

#endif  // BASE_CONSOLE_RANK_FILES_H_
