// The flags of elastic jobs.
#ifndef LAUNCHER_ELASTIC_OPTIONS_H_
#define LAUNCHER_ELASTIC_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "launcher/flag_table.h"
#include "rendezvous/membership/membership.h"

namespace hvd {

struct ElasticOptions {
  int min_workers = 0;
  int max_workers = 0;     // 0: as many as there are slots
  std::string script;      // of host discovery, as given; empty: the hosts are fixed
  int slots_per_host = 0;  // 0: not given
  ElasticSpec spec;
};

// "5/10m": so many failures within so long a time.   InvalidArgument: not of this form.
absl::StatusOr<FailureBudget> ParseFailureBudget(const std::string& text);

// Declares the flags and gathers what they are given. One use; must outlive the table's Parse.
class ElasticFlags {
 public:
  void Declare(FlagTable& flags);

  // What was asked for, or nullopt for a static job, once all flags are read.
  //   InvalidArgument: numbers that contradict each other, a flag that only elastic jobs have in a
  //   job that is none, or HOROVOD_ELASTIC_TIMEOUT is no number.
  absl::StatusOr<std::optional<ElasticOptions>> Finish(int num_proc, bool lists_hosts,
                                                       const Environment& environment) const;

 private:
  // A whole number; goes into `target` by `store`.
  template <typename Store>
  void Number(FlagTable& flags, const std::string& names, const std::string& help, int64_t low,
              int64_t high, Store store, const std::string& kind = "N");
  void DeclareSizes(FlagTable& flags);
  void DeclareHosts(FlagTable& flags);
  void DeclareFailures(FlagTable& flags);
  absl::Status CheckSizes(int num_proc) const;

  ElasticOptions options_;
  std::vector<std::string> given_;  // the flags, as they are named in messages
  bool has_min_ = false;
  bool has_elastic_timeout_ = false;
};

}  // namespace hvd

#endif  // LAUNCHER_ELASTIC_OPTIONS_H_
