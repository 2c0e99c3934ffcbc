// The choice of how many connections carry the large messages between two ranks.
#ifndef COLLECTIVES_TCP_CONNECTION_COUNT_H_
#define COLLECTIVES_TCP_CONNECTION_COUNT_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace hvd::collectives::tcp {

// When the large messages between two ranks are split over several connections.
struct SplitRule {
  // Messages of at least this size are large.
  size_t large_bytes = 256 << 10;
  // The bytes of large messages, in both directions together, from the first message to the first
  // review, which decides nothing, from that to the second one, and from the begin to the end of a
  // try. After each review that leaves one connection the pause is four times as long as before it.
  uint64_t review_bytes = 64 << 20;
  // From the first review on, on one host as well, and whatever the paces are. For tests.
  bool always = false;
};

// The pace at which one end has sent and received its large messages.
struct SendPace {
  uint64_t bytes = 0;
  uint64_t held_up_bytes = 0;  // of these, those that the kernel did not take at once
  // All large messages, received ones too, and for how long any was under way: what several
  // connections are judged by. They have more buffers, so less is held up, faster or not.
  uint64_t moved_bytes = 0;
  uint64_t moving_nanoseconds = 0;

  // Whether most of the bytes had to wait.
  bool is_held_up() const { return held_up_bytes > 0 && held_up_bytes * 2 >= bytes; }
  // Of both directions, in gigabits a second; 0 if nothing has moved.
  double gbits() const {
    if (moving_nanoseconds == 0) return 0;
    return 8 * static_cast<double>(moved_bytes) / static_cast<double>(moving_nanoseconds);
  }
};

// One connection is used at first. Some networks cap the pace of each connection, so if messages
// are held up, several are tried for as many bytes, and kept if they are clearly faster. Otherwise
// the next try comes after more bytes. Both ends follow the same rules with the same paces, so they
// decide alike without asking each other. Pure.
class ConnectionCount {
 public:
  explicit ConnectionCount(const SplitRule& rule)
      : rule_(rule), pause_bytes_(rule.review_bytes), next_review_(rule.review_bytes) {}

  // `total`: the bytes that have passed since the first message.
  bool IsReviewDue(uint64_t total) const { return total >= next_review_; }

  // Decides by the paces of both ends since the last review.
  // REQUIRES: IsReviewDue(total).
  void Review(uint64_t total, const SendPace& one_end, const SendPace& other_end);

  // Ends the reviews, and a try that has just begun: one connection is used from now on.
  void StayWithOne();

  // Whether several connections are to be used from now on.
  bool uses_several() const { return is_trying_ || is_settled_; }
  // Whether several have proved faster. There are no more reviews then.
  bool is_settled() const { return is_settled_; }

 private:
  bool IsFaster(const SendPace& before, const SendPace& now) const;
  bool IsSlower(const SendPace& before, const SendPace& now) const;
  // Whether enough has moved in both times.
  bool AreComparable(const SendPace& before, const SendPace& now) const;
  void Try(uint64_t total, const SendPace& one_end, const SendPace& other_end);
  void Wait(uint64_t total);
  void Settle();

  SplitRule rule_;
  uint64_t pause_bytes_;
  uint64_t next_review_;
  bool is_warm_ = false;  // had a first review, which decides nothing
  bool is_trying_ = false;
  bool is_settled_ = false;
  // With one connection, in so many times the bytes of a try.
  uint64_t tries_before_ = 1;
  SendPace one_end_before_;
  SendPace other_end_before_;
};

// For people: "7.6 Gbit/s".
std::string PaceText(const SendPace& pace);

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_CONNECTION_COUNT_H_
