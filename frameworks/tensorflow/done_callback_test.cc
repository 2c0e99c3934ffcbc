#include "frameworks/tensorflow/done_callback.h"

#include "gtest/gtest.h"

namespace hvd::frameworks::tensorflow {
namespace {

TF_AsyncOpKernelDoneCallback* AsDone(std::function<void()>* function) {
  return reinterpret_cast<TF_AsyncOpKernelDoneCallback*>(function);
}

TEST(DoneCallbackTest, TakeDone_OfKnownCode_OutlivesTheOriginal) {
  const std::vector<CodeRange> code = CodeOf("");  // includes this program's code
  int calls = 0;
  std::function<void()> taken;
  {
    std::function<void()> original = [&calls] { ++calls; };
    taken = TakeDone(AsDone(&original), code);
    EXPECT_FALSE(original);
  }
  taken();
  EXPECT_EQ(calls, 1);
}

TEST(DoneCallbackTest, TakeDone_OfForeignCode_LeavesItAsItWas) {
  int calls = 0;
  std::function<void()> original = [&calls] { ++calls; };
  EXPECT_FALSE(TakeDone(AsDone(&original), CodeOf("no such library")));
  original();
  EXPECT_EQ(calls, 1);
}

TEST(DoneCallbackTest, TakeDone_NotAFunction_ReturnsNone) {
  alignas(16) char other[32] = {};
  EXPECT_FALSE(TakeDone(reinterpret_cast<TF_AsyncOpKernelDoneCallback*>(other), CodeOf("")));
}

TEST(DoneCallbackTest, CodeOf_KnowsTheLibrary) {
  EXPECT_FALSE(CodeOf("libstdc++").empty());
  EXPECT_TRUE(CodeOf("no such library").empty());
}

}  // namespace
}  // namespace hvd::frameworks::tensorflow
