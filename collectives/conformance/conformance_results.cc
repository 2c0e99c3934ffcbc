// Results: every operation against a plain model.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

#include "collectives/conformance/conformance.h"
#include "collectives/type_dispatch.h"

namespace hvd::collectives::conformance {
namespace {

using Bytes = std::vector<char>;

constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct};
constexpr size_t kSizes[] = {0, 1, 3, 17, 1000, 70001};
constexpr int kMaxRanks = 4;

const CallOptions kPatient = {absl::Seconds(60)};

// Small integers: exact in all types, whatever the order of reduction. No zeros among the signed
// ones, which would give -0 in some.
int Value(int rank, size_t i, DataType type) {
  const int value = static_cast<int>((i * 5 + rank * 7) % 11 % 3);
  if (type == DataType::kBool) return value != 0;
  if (type == DataType::kUint8) return value;
  return value == 0 ? -1 : value + 1;
}

int ModelOf(int a, int b, DataType type, ReduceOp op) {
  const bool logical = type == DataType::kBool;
  switch (op) {
    case ReduceOp::kSum:
      return logical ? a | b : a + b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kProduct:
      break;
  }
  return a * b;
}

// Elements first..first+count-1 of a tensor whose i-th element is value(i); the values repeat
// after 11.
Bytes Tensor(size_t first, size_t count, DataType type, const std::function<int(size_t)>& value) {
  return Dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T cycle[11];
    for (size_t i = 0; i < 11; ++i) {
      if constexpr (std::is_same_v<T, BoolByte>) {
        cycle[i] = BoolByte{static_cast<uint8_t>(value(i))};
      } else if constexpr (std::is_arithmetic_v<T>) {
        cycle[i] = static_cast<T>(value(i));
      } else {
        cycle[i] = T::FromFloat(static_cast<float>(value(i)));
      }
    }
    std::rotate(cycle, cycle + first % 11, cycle + 11);
    Bytes bytes(count * sizeof(T));
    for (size_t done = 0; done < bytes.size(); done += sizeof(cycle)) {
      std::memcpy(&bytes[done], cycle, std::min(sizeof(cycle), bytes.size() - done));
    }
    return bytes;
  });
}

Bytes Input(int rank, size_t count, DataType type) {
  return Tensor(0, count, type, [&](size_t i) { return Value(rank, i, type); });
}

Bytes Reduced(int size, size_t first, size_t count, DataType type, ReduceOp op) {
  return Tensor(first, count, type, [&](size_t i) {
    int result = Value(0, i, type);
    for (int r = 1; r < size; ++r) result = ModelOf(result, Value(r, i, type), type, op);
    return result;
  });
}

template <typename F>
void ForEachTypeAndOp(F&& f) {
  for (int t = 0; t < kDataTypeCount; ++t) {
    for (const ReduceOp op : kOps) f(static_cast<DataType>(t), op);
  }
}

// A different number for every rank; zero for one of them.
size_t UnevenCount(int rank, size_t size) { return rank == 1 ? 0 : size + rank; }

// Rank `from`'s bytes for rank `to`.
Bytes Letter(int from, int to, size_t bytes) {
  return Bytes(bytes, static_cast<char>(16 * from + to + 1));
}

void Append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

TEST_P(BackendConformanceTest, AllReduce_EveryTypeOperationAndSize) {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    group_.Connect(ranks);
    group_.Run([&](Communicator& c) {
      ForEachTypeAndOp([&](DataType type, ReduceOp op) {
        for (const size_t size : kSizes) {
          Bytes in = Input(c.rank(), size, type), out(in.size());
          const Bytes before = in, expected = Reduced(ranks, 0, size, type, op);
          const auto what = testing::Message()
                            << NameOf(type) << NameOf(op) << size << c.ToString();
          ASSERT_EQ(c.AllReduce(in.data(), out.data(), size, type, op, kPatient), absl::OkStatus());
          ASSERT_TRUE(out == expected) << what;
          ASSERT_TRUE(in == before) << "input changed, " << what;
          ASSERT_EQ(c.AllReduce(in.data(), in.data(), size, type, op, kPatient), absl::OkStatus());
          ASSERT_TRUE(in == expected) << "in place, " << what;
        }
      });
    });
  }
}

// Sums of floats depend on the order: it must be the same on all ranks, or model replicas drift
// apart.
TEST_P(BackendConformanceTest, AllReduce_GivesAllRanksTheSameBits) {
  group_.Connect(kMaxRanks);
  for (const size_t size : {5u, 5000u, 40000u, 300001u}) {
    std::vector<std::vector<float>> results(kMaxRanks);
    group_.Run([&](Communicator& c) {
      std::vector<float>& data = results[c.rank()];
      std::mt19937 random(c.rank());
      for (size_t i = 0; i < size; ++i) data.push_back(1.0f / static_cast<float>(random()));
      ASSERT_EQ(
          c.AllReduce(data.data(), data.data(), size, DataType::kFloat32, ReduceOp::kSum, kPatient),
          absl::OkStatus());
    });
    for (int r = 1; r < kMaxRanks; ++r) EXPECT_TRUE(results[r] == results[0]) << r << " " << size;
  }
}

TEST_P(BackendConformanceTest, AllGather_UnevenBlocks) {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    group_.Connect(ranks);
    group_.Run([&](Communicator& c) {
      for (const size_t size : {0u, 1u, 17u, 1000u, 300000u, 2500000u}) {
        std::vector<size_t> counts;
        Bytes expected;
        size_t offset = 0;
        for (int r = 0; r < ranks; ++r) {
          if (r == c.rank()) offset = expected.size();
          counts.push_back(UnevenCount(r, size));
          Append(expected, Letter(r, 0, counts.back()));
        }
        const Bytes in = Letter(c.rank(), 0, counts[c.rank()]);
        Bytes out(expected.size());
        ASSERT_EQ(c.AllGather(in.data(), out.data(), counts, kPatient), absl::OkStatus());
        ASSERT_TRUE(out == expected) << size << " " << c.ToString();
        Bytes in_place(expected.size());
        std::copy(in.begin(), in.end(), in_place.begin() + offset);
        ASSERT_EQ(c.AllGather(in_place.data() + offset, in_place.data(), counts, kPatient),
                  absl::OkStatus());
        ASSERT_TRUE(in_place == expected) << "in place " << size << " " << c.ToString();
      }
    });
  }
}

TEST_P(BackendConformanceTest, Broadcast_FromEveryRoot) {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    group_.Connect(ranks);
    group_.Run([&](Communicator& c) {
      for (int root = 0; root < ranks; ++root) {
        for (const size_t bytes : {0u, 1u, 17u, 1000u, 70001u, 1500001u}) {
          Bytes buffer = Letter(c.rank(), 0, bytes);
          ASSERT_EQ(c.Broadcast(buffer.data(), bytes, root, kPatient), absl::OkStatus());
          ASSERT_TRUE(buffer == Letter(root, 0, bytes)) << bytes << " " << c.ToString();
        }
      }
    });
  }
}

TEST_P(BackendConformanceTest, BroadcastStretches_ShowsTheBytesInOrderWithinAlignedStretches) {
  constexpr size_t kLengths[] = {0, 5, 64, 70001, 0, 3, 1000, 1500001, 1, 7};
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    group_.Connect(ranks);
    group_.Run([&](Communicator& c) {
      for (size_t count = 0; count <= std::size(kLengths); ++count) {
        const int root = static_cast<int>(count) % ranks;
        std::vector<Bytes> buffers, expected;
        std::vector<Stretch> stretches;
        for (size_t i = 0; i < count; ++i) {
          buffers.push_back(Letter(c.rank(), static_cast<int>(i), kLengths[i]));
          expected.push_back(Letter(root, static_cast<int>(i), kLengths[i]));
        }
        for (Bytes& buffer : buffers) stretches.push_back({buffer.data(), buffer.size()});
        size_t at = 0, offset = 0;  // in which stretch the next bytes lie, and where
        const auto observe = [&](const void* bytes, size_t shown) {
          while (at < count && offset == expected[at].size()) ++at, offset = 0;
          ASSERT_LT(at, count);
          ASSERT_EQ(offset % kStretchAlignment, 0u);
          ASSERT_LE(offset + shown, expected[at].size());
          ASSERT_EQ(std::memcmp(bytes, &expected[at][offset], shown), 0);
          offset += shown;
        };
        ASSERT_EQ(c.BroadcastStretches(stretches, root, observe, kPatient), absl::OkStatus());
        ASSERT_TRUE(buffers == expected) << count << " " << c.ToString();
        while (at < count && offset == expected[at].size()) ++at, offset = 0;
        ASSERT_EQ(at, count) << c.ToString();
      }
    });
  }
}

TEST_P(BackendConformanceTest, AllToAll_UnevenBlocks) {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    group_.Connect(ranks);
    group_.Run([&](Communicator& c) {
      for (const size_t size : kSizes) {
        std::vector<size_t> send, receive;
        Bytes in, expected;
        for (int r = 0; r < ranks; ++r) {
          send.push_back(UnevenCount((c.rank() + 2 * r) % 5, size));
          Append(in, Letter(c.rank(), r, send.back()));
          receive.push_back(UnevenCount((r + 2 * c.rank()) % 5, size));
          Append(expected, Letter(r, c.rank(), receive.back()));
        }
        Bytes out(expected.size());
        ASSERT_EQ(c.AllToAll(in.data(), send, out.data(), receive, kPatient), absl::OkStatus());
        ASSERT_TRUE(out == expected) << size << " " << c.ToString();
      }
    });
  }
}

TEST_P(BackendConformanceTest, ReduceScatter_UnevenBlocks) {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    group_.Connect(ranks);
    group_.Run([&](Communicator& c) {
      ForEachTypeAndOp([&](DataType type, ReduceOp op) {
        for (const size_t size : kSizes) {
          std::vector<size_t> counts;
          size_t total = 0, first = 0;
          for (int r = 0; r < ranks; ++r) {
            if (r == c.rank()) first = total;
            counts.push_back(UnevenCount(r, size));
            total += counts.back();
          }
          const Bytes in = Input(c.rank(), total, type);
          // A copy is the point: the operation must leave `in` alone, const or not.
          const Bytes before = in;  // NOLINT(performance-unnecessary-copy-initialization)
          const Bytes expected = Reduced(ranks, first, counts[c.rank()], type, op);
          Bytes out(expected.size());
          ASSERT_EQ(c.ReduceScatter(in.data(), out.data(), counts, type, op, kPatient),
                    absl::OkStatus());
          ASSERT_TRUE(out == expected) << NameOf(type) << NameOf(op) << size << c.ToString();
          ASSERT_TRUE(in == before);
          Bytes in_place = in;
          char* const own = in_place.data() + first * SizeOf(type);
          ASSERT_EQ(c.ReduceScatter(in_place.data(), own, counts, type, op, kPatient),
                    absl::OkStatus());
          ASSERT_TRUE(std::equal(expected.begin(), expected.end(), own))
              << "in place, " << NameOf(type) << NameOf(op) << size << c.ToString();
        }
      });
    });
  }
}

// Blocks of several segments, so that partial sums of different steps share memory.
TEST_P(BackendConformanceTest, ReduceScatter_ManySegments) {
  group_.Connect(kMaxRanks);
  group_.Run([&](Communicator& c) {
    const std::vector<size_t> counts = {400000, 1, 0, 700003};
    const size_t first[] = {0, 400000, 400001, 400001};
    const Bytes in = Input(c.rank(), 1100004, DataType::kInt32);
    for (int round = 0; round < 3; ++round) {
      const size_t own = counts[c.rank()];
      Bytes out(own * sizeof(int32_t));
      ASSERT_EQ(c.ReduceScatter(in.data(), out.data(), counts, DataType::kInt32, ReduceOp::kSum,
                                kPatient),
                absl::OkStatus());
      ASSERT_TRUE(out ==
                  Reduced(kMaxRanks, first[c.rank()], own, DataType::kInt32, ReduceOp::kSum));
      Bytes in_place = in;
      char* const block = in_place.data() + first[c.rank()] * sizeof(int32_t);
      ASSERT_EQ(c.ReduceScatter(in_place.data(), block, counts, DataType::kInt32, ReduceOp::kSum,
                                kPatient),
                absl::OkStatus());
      ASSERT_TRUE(std::equal(out.begin(), out.end(), block));
    }
  });
}

// Some ranks exchange more often than others; the messages of other ranks must not get mixed up.
TEST_P(BackendConformanceTest, SendReceive_BetweenSomeRanks) {
  group_.Connect(kMaxRanks);
  group_.Run([&](Communicator& c) {
    for (const size_t bytes : {0u, 1u, 1000u, 900001u}) {
      for (int round = 0; round < 1 + 2 * (c.rank() / 2); ++round) {
        const int peer = c.rank() ^ 1;
        const Bytes in = Letter(c.rank(), round, bytes);
        Bytes out(bytes);
        ASSERT_EQ(c.SendReceive(peer, in.data(), out.data(), bytes, kPatient), absl::OkStatus());
        ASSERT_TRUE(out == Letter(peer, round, bytes)) << bytes << " " << c.ToString();
      }
      int32_t one = 1;
      ASSERT_EQ(c.AllReduce(&one, &one, 1, DataType::kInt32, ReduceOp::kSum, kPatient),
                absl::OkStatus());
      ASSERT_EQ(one, kMaxRanks);
    }
  });
}

TEST_P(BackendConformanceTest, Barrier_NobodyLeavesBeforeAllHaveCome) {
  for (int ranks = 1; ranks <= kMaxRanks + 1; ++ranks) {
    group_.Connect(ranks);
    std::atomic<int> arrived{0};
    group_.Run([&](Communicator& c) {
      for (int round = 1; round <= 20; ++round) {
        ++arrived;
        ASSERT_EQ(c.Barrier(kPatient), absl::OkStatus());
        ASSERT_GE(arrived.load(), round * ranks) << c.ToString();
      }
    });
  }
}

// Fast ranks run ahead of slow ones; messages of different calls must not be confused.
TEST_P(BackendConformanceTest, MixedCalls_KeepApart) {
  group_.Connect(3);
  group_.Run([&](Communicator& c) {
    for (int32_t i = 0; i < 200; ++i) {
      int32_t from_root = c.rank() == i % 3 ? i : -1;
      ASSERT_EQ(c.Broadcast(&from_root, sizeof(i), i % 3, kPatient), absl::OkStatus());
      ASSERT_EQ(from_root, i);
      int32_t sum = i;
      ASSERT_EQ(c.AllReduce(&sum, &sum, 1, DataType::kInt32, ReduceOp::kSum, kPatient),
                absl::OkStatus());
      ASSERT_EQ(sum, 3 * i);
      if (i % 5 == 0) {
        ASSERT_EQ(c.Barrier(kPatient), absl::OkStatus());
      }
    }
  });
}

}  // namespace
}  // namespace hvd::collectives::conformance
