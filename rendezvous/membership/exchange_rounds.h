// The all-gather rounds of one epoch (the Exchange RPC).
#ifndef RENDEZVOUS_MEMBERSHIP_EXCHANGE_ROUNDS_H_
#define RENDEZVOUS_MEMBERSHIP_EXCHANGE_ROUNDS_H_

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::membership {

// A round is identified by its key and complete when every rank has given a value; each key is used
// for one round. A value counts only while its call is parked. The newest results are kept, so that
// a call that is repeated after a lost answer gets the same answer. All memory is bounded, since a
// faulty member must not take that of other jobs. Not thread-safe.
class ExchangeRounds {
 public:
  static constexpr size_t kMaxValueBytes = size_t{1} << 20;
  static constexpr size_t kMaxKeyBytes = size_t{4} << 10;
  // Of one rank, in rounds that are not complete. A worker waits for few at a time.
  static constexpr size_t kMaxOpen = 256;
  static constexpr size_t kMaxOpenBytes = size_t{4} << 20;
  // Of one round: every rank may get all of it.
  static constexpr size_t kMaxRoundBytes = size_t{16} << 20;
  // Of the kept results; the newest one is kept in any case.
  static constexpr size_t kMaxKept = 4096;
  static constexpr size_t kMaxKeptBytes = size_t{16} << 20;

  explicit ExchangeRounds(int size);

  // Parks the call until its round is complete; the last rank's call completes the round. If the
  // rank has a call parked in this round already, that call ends with Cancelled and the new value
  // counts. REQUIRES: 0 <= rank < size
  // Errors:
  //   - InvalidArgument: no key, or one of more than kMaxKeyBytes, or a value of more than
  //     kMaxValueBytes.
  //   - ResourceExhausted: the rank has kMaxOpen calls parked, or kMaxOpenBytes in them, or the
  //     round has kMaxRoundBytes.
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
    if (Fields::kReads) CountAll();
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
    size_t bytes = 0;  // of the gifts' values; derived

    template <typename Fields>
    void Keep(Fields& fields) {
      auto& [gifts, values, bytes] = *this;
      (void)bytes;
      fields("gifts", gifts, "values", values);
    }
  };

  using Rounds = std::map<std::string, Round>;
  struct Share {
    size_t calls = 0;
    size_t bytes = 0;
  };

  absl::Status Check(absl::string_view key, absl::string_view value) const;
  absl::Status CheckShare(int rank, size_t bytes) const;
  absl::Status CheckRound(const std::string& key, size_t bytes) const;
  void Complete(Rounds::iterator round, std::vector<Effect>* effects);
  void ForgetOldResults();
  void CountAll();
  void Count(const std::string& key, Round& round);
  void Add(int rank, const std::string& key, Round& round, const Gift& gift);
  void Remove(int rank, const std::string& key, Round& round, const Gift& gift);

  int size_;
  absl::Status closed_;  // OK while open
  Rounds rounds_;
  // Derived from rounds_, but for the order of the results.
  std::map<int, Share> open_;     // by rank
  std::deque<std::string> kept_;  // the keys of the complete rounds, the oldest first
  size_t kept_bytes_ = 0;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_EXCHANGE_ROUNDS_H_
