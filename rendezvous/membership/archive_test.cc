#include "rendezvous/membership/archive.h"

#include <limits>

#include "gtest/gtest.h"

namespace hvd::rendezvous::membership {
namespace {

struct Inner {
  std::string name;
  std::optional<int> number;

  template <typename Archive>
  void Keep(Archive& archive) {
    auto& [a, b] = *this;
    archive(a, b);
  }
  friend bool operator==(const Inner& a, const Inner& b) {
    return a.name == b.name && a.number == b.number;
  }
};

enum class Color { kRed, kGreen };

struct Outer {
  bool flag = true;
  int negative = -7;
  uint64_t large = std::numeric_limits<uint64_t>::max();
  Color color = Color::kGreen;
  WorkerId worker = WorkerId(12);
  Rank rank = Rank(-1);
  absl::Duration duration = absl::Nanoseconds(1234567890123);
  absl::Duration endless = -absl::InfiniteDuration();
  absl::Time time = absl::FromUnixNanos(1600000000123456789);
  absl::Time never = absl::InfiniteFuture();
  absl::Time always = absl::InfinitePast();
  absl::Status status = absl::NotFoundError("no such thing");
  absl::Status fine;
  std::vector<Inner> inners = {{"a", 1}, {std::string("\0b", 2), std::nullopt}};
  std::deque<int> numbers = {3, 2, 1};
  std::map<std::pair<std::string, int>, Inner> by_key = {{{"host", 1}, {"c", -1}}};
  std::set<Incarnation> set = {Incarnation(5), Incarnation(6)};
  std::array<uint64_t, 3> array = {7, 8, 9};

  template <typename Archive>
  void Keep(Archive& archive) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = *this;
    archive(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
  }
};

std::string Written(Outer value) {
  ArchiveWriter writer;
  writer(value);
  return writer.Take();
}

Outer Blank() {
  Outer blank;
  blank.flag = false;
  blank.negative = 0;
  blank.large = 0;
  blank.color = Color::kRed;
  blank.worker = WorkerId();
  blank.rank = Rank();
  blank.duration = blank.endless = absl::ZeroDuration();
  blank.time = blank.never = blank.always = absl::UnixEpoch();
  blank.status = absl::OkStatus();
  blank.fine = absl::InternalError("not");
  blank.inners = {{"x", 9}};
  blank.numbers.clear();
  blank.by_key = {{{"old", 1}, {}}};
  blank.set.clear();
  blank.array = {};
  return blank;
}

TEST(ArchiveTest, EveryKind_ComesBackAsItWas) {
  const std::string bytes = Written(Outer());
  Outer back = Blank();
  EXPECT_NE(Written(back), bytes);
  ArchiveReader reader(bytes);
  reader(back);
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(Written(back), bytes);
  const Outer as_it_was;
  EXPECT_EQ(back.negative, -7);
  EXPECT_EQ(back.never, absl::InfiniteFuture());
  EXPECT_EQ(back.endless, -absl::InfiniteDuration());
  EXPECT_EQ(back.time, as_it_was.time);
  EXPECT_EQ(back.status, as_it_was.status);
  EXPECT_TRUE(back.fine.ok());
  EXPECT_EQ(back.inners, as_it_was.inners);
  EXPECT_EQ(back.by_key, as_it_was.by_key);
}

TEST(ArchiveTest, CutAnywhere_IsNoticed) {
  const std::string bytes = Written(Outer());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ArchiveReader reader(absl::string_view(bytes).substr(0, size));
    Outer back = Blank();
    reader(back);
    EXPECT_FALSE(reader.complete()) << size;
  }
}

TEST(ArchiveTest, MoreThanThereShouldBe_IsNoticed) {
  const std::string bytes = Written(Outer()) + "x";
  ArchiveReader reader(bytes);
  Outer back = Blank();
  reader(back);
  EXPECT_TRUE(reader.ok());
  EXPECT_FALSE(reader.complete());
}

TEST(ArchiveTest, HugeSizes_TakeNoMemory) {
  const std::string bytes(8, '\xff');
  std::vector<std::string> strings;
  ArchiveReader reader(bytes);
  reader(strings);
  EXPECT_FALSE(reader.ok());
  std::string text;
  ArchiveReader again(bytes);
  again(text);
  EXPECT_FALSE(again.ok());
}

}  // namespace
}  // namespace hvd::rendezvous::membership
