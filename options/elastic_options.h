// The flags of elastic jobs, shared by all programs that start jobs.
#ifndef OPTIONS_ELASTIC_OPTIONS_H_
#define OPTIONS_ELASTIC_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "options/flag_table.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::options {

struct ElasticOptions {
  int min_workers = 0;     // 0: num_proc, which was not known
  int max_workers = 0;     // 0: the number of slots
  std::string script;      // the host discovery script, as given; empty: none
  int slots_per_host = 0;  // 0: not given
  rendezvous::policy::ElasticSpec spec;
};

// Parses a failure budget: "5/10m" is 5 failures within 10 minutes.
// Errors:
//   - InvalidArgument: not of this form.
absl::StatusOr<rendezvous::policy::FailureBudget> ParseFailureBudget(const std::string& text);

// Declares the flags and collects their values. A job is elastic if --min-np, --max-np or a
// discovery script is given. For one use; must outlive the table's Parse.
class ElasticFlags {
 public:
  // `with_discovery`: the program can run a host discovery script.
  explicit ElasticFlags(bool with_discovery) : with_discovery_(with_discovery) {}

  void Declare(FlagTable& flags);

  // Whether a discovery script was given.
  bool has_script() const { return !options_.script.empty(); }

  // Returns the options, or nullopt for a static job. Call it after the table's Parse. `num_proc`:
  // 0 if it is not known yet.
  // Errors:
  //   - InvalidArgument: contradictory numbers, a flag of elastic jobs in a static job, or a
  //     HOROVOD_ELASTIC_TIMEOUT that is not a number.
  absl::StatusOr<std::optional<ElasticOptions>> Finish(int num_proc, bool lists_hosts,
                                                       const Environment& environment) const;

 private:
  template <typename Store>
  void Whole(FlagTable& flags, const std::string& names, const std::string& help, int64_t low,
             int64_t high, Store store);
  void Time(FlagTable& flags, const std::string& name, const std::string& help, double low,
            double high, absl::Duration* target);
  void DeclareSizes(FlagTable& flags);
  void DeclareTimes(FlagTable& flags);
  void DeclareDiscovery(FlagTable& flags);
  void DeclareFailures(FlagTable& flags);
  bool Has(const std::string& name) const;
  std::string Switches() const;
  absl::Status CheckSizes(int num_proc) const;

  const bool with_discovery_;
  ElasticOptions options_;
  std::vector<std::string> given_;  // names of the given flags for messages, without the script's
};

}  // namespace hvd::options

#endif  // OPTIONS_ELASTIC_OPTIONS_H_
