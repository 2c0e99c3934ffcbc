// What to tell the user of a host discovery that fails now and then. Pure.
#ifndef LAUNCHER_SEARCH_WARNINGS_H_
#define LAUNCHER_SEARCH_WARNINGS_H_

#include <set>
#include <string>

#include "absl/status/status.h"

namespace hvd {

// Not thread-safe.
class SearchWarnings {
 public:
  // Takes the status of a result (see HostsFound) and returns a line, or nothing. A failure is told
  // once until there is a good result again, rubbish once for each text.
  std::string Judge(const absl::Status& status);

  bool ever_succeeded() const { return ever_succeeded_; }

 private:
  bool ever_succeeded_ = false;
  bool failing_ = false;
  std::set<std::string> rubbish_;
};

}  // namespace hvd

#endif  // LAUNCHER_SEARCH_WARNINGS_H_
