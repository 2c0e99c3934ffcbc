#include "collectives/types.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace hvd::collectives {
namespace {

TEST(TypesTest, EveryTypeHasItsOwnNameAndASize) {
  std::set<std::string> names;
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    names.insert(std::string(NameOf(type)));
    EXPECT_GE(SizeOf(type), 1u) << NameOf(type);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kDataTypeCount));
  EXPECT_EQ(names.count("unknown type"), 0u);
}

TEST(TypesTest, SizeOf_AgreesWithTheName) {
  EXPECT_EQ(SizeOf(DataType::kUint8), 1u);
  EXPECT_EQ(SizeOf(DataType::kBool), 1u);
  EXPECT_EQ(SizeOf(DataType::kInt16), 2u);
  EXPECT_EQ(SizeOf(DataType::kFloat16), 2u);
  EXPECT_EQ(SizeOf(DataType::kBfloat16), 2u);
  EXPECT_EQ(SizeOf(DataType::kInt32), 4u);
  EXPECT_EQ(SizeOf(DataType::kFloat32), 4u);
  EXPECT_EQ(SizeOf(DataType::kInt64), 8u);
  EXPECT_EQ(SizeOf(DataType::kFloat64), 8u);
}

TEST(TypesTest, IsFloating_HoldsForTheFourFloatTypes) {
  int floating = 0;
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    const bool named_float = std::string(NameOf(type)).find("float") != std::string::npos;
    EXPECT_EQ(IsFloating(type), named_float) << NameOf(type);
    floating += IsFloating(type);
  }
  EXPECT_EQ(floating, 4);
}

TEST(TypesTest, NumbersFromOutside_DoNotCrash) {
  EXPECT_EQ(NameOf(static_cast<DataType>(99)), "unknown type");
  EXPECT_EQ(NameOf(static_cast<ReduceOp>(99)), "unknown operation");
}

}  // namespace
}  // namespace hvd::collectives
