// horovodrun's flags for the workers' output.
#ifndef LAUNCHER_CLI_OUTPUT_FLAGS_H_
#define LAUNCHER_CLI_OUTPUT_FLAGS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "options/flag_table.h"

namespace hvd::launcher::cli {

// Ranges of ranks, both ends included.
using RankRanges = std::vector<std::pair<int, int>>;

struct OutputOptions {
  std::string directory;     // empty: no files
  int64_t rotate_bytes = 0;  // 0: files grow without limit
  int rotated_files = 0;     // the number of rotated files kept of each
  bool timestamps = false;
  bool json = false;
  RankRanges shown_ranks;  // on the terminal; empty: all
};

// Collects the flags' values while a FlagTable parses. One use; must outlive the table's Parse.
class OutputFlags {
 public:
  void Declare(options::FlagTable& flags);
  // Errors:
  //   - InvalidArgument: flags that can't be combined; names them.
  absl::StatusOr<OutputOptions> Finish() const;

 private:
  OutputOptions options_;
  bool has_count_ = false;
};

}  // namespace hvd::launcher::cli

#endif  // LAUNCHER_CLI_OUTPUT_FLAGS_H_
