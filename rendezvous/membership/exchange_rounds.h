// The all-gather rounds of one epoch (the Exchange RPC).
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

// A round is identified by its key and complete when every rank has given a value; each key is used
// for one round. A value counts only while its call is parked. Results are kept, so that a call
// that is repeated after a lost answer gets the same answer. Not thread-safe.
class ExchangeRounds {
 public:
  static constexpr size_t kMaxValueBytes = size_t{1} << 20;

  explicit ExchangeRounds(int size);

  // Parks the call until its round is complete; the last rank's call completes the round. If the
  // rank has a call parked in this round already, that call ends with Cancelled and the new value
  // counts. REQUIRES: 0 <= rank < size
  // Errors:
  //   - InvalidArgument: no key, or a value of more than kMaxValueBytes.
  //   - the status given to Close: it was closed.
  void Give(int rank, CallId call, const std::string& key, std::string value,
            std::vector<Effect>* effects);

  // Withdraws the value of this call and ends the call with `status`. Returns false if no such call
  // is parked.
  bool Withdraw(CallId call, const absl::Status& status, std::vector<Effect>* effects);

  // Drops all parked calls, without an answer, after a restart of the daemon: workers repeat their
  // calls, and with them the values of incomplete rounds.
  void Forget();

  // Ends all parked calls, and every later one, with `status`; no further round completes. Only the
  // first Close has an effect. REQUIRES: !status.ok()
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
    std::map<int, Gift> gifts;  // by rank
    // In rank order; null until it is complete.
    std::shared_ptr<const std::vector<std::string>> values;

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
