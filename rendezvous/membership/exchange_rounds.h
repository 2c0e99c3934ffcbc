// The rounds of all-to-all exchange in one epoch.
#ifndef RENDEZVOUS_MEMBERSHIP_EXCHANGE_ROUNDS_H_
#define RENDEZVOUS_MEMBERSHIP_EXCHANGE_ROUNDS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::membership {

// A round is named by its key and is over when every rank has given a value; a key serves once. A
// value counts only while its call waits. The results are kept, so that a call repeated after a
// lost answer gets the same answer. Not thread-safe.
class ExchangeRounds {
 public:
  static constexpr size_t kMaxValueBytes = size_t{1} << 20;

  explicit ExchangeRounds(int size);

  // Parks the call until its round is over; the call of the last rank completes all. If the rank
  // has a call parked in this round already, that one ends with Cancelled and the new value counts.
  // REQUIRES: 0 <= rank < size
  // Errors, with which the call ends:
  //   - InvalidArgument: no key, or a value of more than kMaxValueBytes.
  //   - Close's status: it was closed.
  void Give(int rank, CallId call, const std::string& key, std::string value,
            std::vector<Effect>* effects);

  // Withdraws the value of this call and ends the call with `status`. Returns false if no such call
  // is parked.
  bool Withdraw(CallId call, const absl::Status& status, std::vector<Effect>* effects);

  // No call is parked any more: values of unfinished rounds must be given again.
  void Forget();

  // Ends all parked calls, and every later one, with `status`: no round will be completed any more.
  // The first close counts. REQUIRES: !status.ok()
  void Close(const absl::Status& status, std::vector<Effect>* effects);

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("size", size_, "closed", closed_, "rounds", rounds_);
  }

 private:
  struct Gift {
    CallId call;
    std::string value;

    template <typename Fields>
    void Keep(Fields& fields) {
      auto& [call, value] = *this;
      fields("call", call, "value", value);
    }
  };
  struct Round {
    std::map<int, Gift> gifts;                               // by rank
    std::shared_ptr<const std::vector<std::string>> values;  // in rank order; null until it is over

    template <typename Fields>
    void Keep(Fields& fields) {
      auto& [gifts, values] = *this;
      fields("gifts", gifts, "values", values);
    }
  };

  absl::Status Check(absl::string_view key, absl::string_view value) const;
  void Complete(Round* round, std::vector<Effect>* effects) const;

  int size_;
  absl::Status closed_;  // OK while open
  std::map<std::string, Round> rounds_;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_EXCHANGE_ROUNDS_H_
