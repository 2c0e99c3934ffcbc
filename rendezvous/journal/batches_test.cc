#include "rendezvous/journal/batches.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::journal {
namespace {

using Payloads = std::vector<std::string>;

std::string Batch(uint64_t number, const Payloads& payloads) {
  std::string contents;
  for (const std::string& payload : payloads) AddToBatch(payload, contents);
  return EncodeBatch(number, contents);
}

// The payloads that were read, and the status.
struct Found {
  Payloads payloads;
  absl::StatusOr<BatchesRead> read;
};

Found Read(const std::string& bytes, size_t begin = 0) {
  Found found;
  found.read = ReadBatches(bytes, begin, [&found](absl::string_view payload) {
    found.payloads.emplace_back(payload);
    return absl::OkStatus();
  });
  return found;
}

// More than a sector, with zeros and without, and with runs as long as the encoding's.
const Payloads kFirst = {"one", std::string("\0two\0\0", 6), ""};
const Payloads kLast = {std::string(254, 'a'), std::string(255, 'b') + '\0', std::string(300, '\0'),
                        std::string(600, 'c'), "end"};

void ExpectFirstOnly(const std::string& bytes, size_t end, const std::string& what) {
  const Found found = Read(bytes);
  ASSERT_TRUE(found.read.ok()) << what << ": " << found.read.status();
  EXPECT_EQ(found.payloads, kFirst) << what;
  EXPECT_EQ(found.read->end, end) << what;
  EXPECT_EQ(found.read->next, 2u) << what;
}

void ExpectDamage(const std::string& bytes, size_t at, const std::string& what) {
  EXPECT_EQ(Read(bytes).read.status(), absl::DataLossError(absl::StrCat("is damaged at byte ", at)))
      << what;
}

class BatchesTest : public testing::Test {
 protected:
  const std::string first_ = Batch(1, kFirst);
  const std::string last_ = Batch(2, kLast);
  const std::string both_ = first_ + last_;
};

TEST_F(BatchesTest, ComeBackAsTheyWere_WithoutAZeroByte) {
  EXPECT_EQ(both_.find('\0'), std::string::npos);
  const Found found = Read("before" + both_, 6);
  ASSERT_TRUE(found.read.ok()) << found.read.status();
  Payloads all = kFirst;
  all.insert(all.end(), kLast.begin(), kLast.end());
  EXPECT_EQ(found.payloads, all);
  EXPECT_EQ(found.read->end, 6 + both_.size());
  EXPECT_EQ(found.read->next, 3u);
}

TEST_F(BatchesTest, LastIsTruncated_LastIsSkipped) {
  for (size_t size = first_.size(); size < both_.size(); ++size) {
    ExpectFirstOnly(both_.substr(0, size), first_.size(), absl::StrCat("of ", size));
  }
}

// A power cut after the file's size was extended: any subset of the last write's sectors reads as
// zeros, for every offset of the write in its first sector.
TEST_F(BatchesTest, LastLostASector_LastIsSkipped) {
  constexpr size_t kSector = 512;
  for (size_t offset = 0; offset < kSector; offset += 37) {
    std::vector<std::pair<size_t, size_t>> sectors;  // of the last batch
    for (size_t begin = 0; begin < last_.size();) {
      const size_t size = std::min(kSector - (offset + begin) % kSector, last_.size() - begin);
      sectors.emplace_back(begin, size);
      begin += size;
    }
    for (size_t lost = 1; lost < size_t{1} << sectors.size(); ++lost) {
      std::string torn = last_;
      for (size_t i = 0; i < sectors.size(); ++i) {
        if ((lost >> i & 1) == 0) continue;
        torn.replace(sectors[i].first, sectors[i].second, sectors[i].second, '\0');
      }
      ExpectFirstOnly(first_ + torn, first_.size(), absl::StrCat(offset, ", lost ", lost));
    }
  }
}

TEST_F(BatchesTest, RangeOfTheLastIsZero_LastIsSkipped) {
  const std::string last = Batch(2, {"a", std::string("b\0", 2)});
  for (size_t begin = 0; begin < last.size(); ++begin) {
    for (size_t size = 1; begin + size <= last.size(); ++size) {
      std::string torn = last;
      torn.replace(begin, size, size, '\0');
      ExpectFirstOnly(first_ + torn, first_.size(), absl::StrCat(begin, "+", size));
      ExpectFirstOnly(first_ + torn + std::string(size == last.size() ? 700 : 0, '\0'),
                      first_.size(), absl::StrCat(begin, "+", size, ", and more"));
    }
  }
}

TEST_F(BatchesTest, AnyRangeBeforeTheLastIsZeros_Damage) {
  for (size_t begin = 0; begin < first_.size(); ++begin) {
    for (size_t size = 1; begin + size <= first_.size(); ++size) {
      std::string damaged = both_;
      damaged.replace(begin, size, size, '\0');
      ExpectDamage(damaged, 0, absl::StrCat(begin, "+", size));
    }
  }
}

TEST_F(BatchesTest, AnyBitOfTheLastHasChanged_Damage) {
  for (size_t i = first_.size(); i < both_.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = both_;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      if (damaged[i] == '\0') continue;  // as if it were lost
      ExpectDamage(damaged, first_.size(), absl::StrCat(i, ", bit ", bit));
    }
  }
}

TEST_F(BatchesTest, AnyBitBeforeTheLastHasChanged_Damage) {
  for (size_t i = 0; i < first_.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = both_;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      ExpectDamage(damaged, 0, absl::StrCat(i, ", bit ", bit));
    }
  }
}

TEST_F(BatchesTest, ABatchIsMissing_OrThereTwice_Damage) {
  ExpectDamage(last_, 0, "the second alone");
  ExpectDamage(first_ + first_, first_.size(), "the first twice");
}

TEST_F(BatchesTest, UnknownContent_IsDamage) {
  ExpectDamage(first_ + "short", first_.size(), "short");
  ExpectDamage(first_ + std::string(1000, 'x'), first_.size(), "long");
  ExpectDamage(first_ + std::string("\0\0\0\0 text", 9) + std::string(100, '\0'), first_.size(),
               "with zeros");
}

TEST_F(BatchesTest, VisitFails_ItsErrorIsReturned) {
  const absl::Status status = ReadBatches(both_, 0, [](absl::string_view) {
                                return absl::DataLossError("unknown");
                              }).status();
  EXPECT_EQ(status, absl::DataLossError("unknown"));
}

}  // namespace
}  // namespace hvd::rendezvous::journal
