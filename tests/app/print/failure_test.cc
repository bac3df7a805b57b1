// Exceptions to sentences and exit codes.
#include "app/print/failure.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/error.h"

namespace braid::failure_test {

using testing::HasSubstr;

template <class Body>
Failure failure_of(Body body, const std::string& command = "") {
  try {
    body();
  } catch (...) {
    return current_failure(command);
  }
  return {};
}

TEST(Failure, BadInputIsTwoAndAllElseOne) {
  EXPECT_EQ(failure_of([] { throw InputError("a"); }).exit_code, 2);
  EXPECT_EQ(failure_of([] { throw Error("a"); }).exit_code, 1);
  EXPECT_EQ(failure_of([] { throw std::logic_error("a"); }).exit_code, 1);
}

TEST(Failure, LibTorchsErrorsLoseTheirBacktrace) {
  const auto failure = failure_of([] { at::ones({2, 3}).mm(at::ones({4, 5})); });
  EXPECT_EQ(failure.exit_code, 1);
  EXPECT_THAT(failure.sentence, HasSubstr("cannot be multiplied"));
  EXPECT_EQ(failure.sentence.find('\n'), std::string::npos);
  EXPECT_GT(failure.details.size(), failure.sentence.size());
}

TEST(Failure, LackOfMemorySaysWhatTakesLess) {
  const auto torch = failure_of([] { at::empty({std::int64_t(1) << 60}, at::kByte); }, "generate");
  EXPECT_EQ(torch.exit_code, 1);
  EXPECT_THAT(torch.sentence,
              HasSubstr("out of memory (1152922 TB more wanted): a smaller --size"));
  const auto standard = failure_of([] { throw std::bad_alloc(); }, "bench");
  EXPECT_THAT(standard.sentence, testing::StartsWith("out of memory: a smaller --size"));
}

TEST(Failure, UnknownExceptionsAreNamed) {
  const auto failure = failure_of([] { throw std::out_of_range("index\nx"); });
  EXPECT_EQ(failure.sentence, "index x");
  EXPECT_EQ(failure.details, "thrown as std::out_of_range");
}

TEST(Failure, NamesFlagsWhereTheLibraryNamesFields) {
  EXPECT_EQ(with_flags("give it as `vae_file`, or `components` DIR or `components` NAME"),
            "give it as --vae-file, or --components DIR or --components NAME");
  EXPECT_EQ(with_flags("a `word` of its own"), "a `word` of its own");
  EXPECT_EQ(with_flags("`boxes`: box 1, `keep_dense` x"), "--boxes: box 1, --quantize-skip x");
  EXPECT_EQ(with_name("`boxes`: box 1, of `boxes`", "`boxes`", "a`boxes`.json"),
            "a`boxes`.json: box 1, of a`boxes`.json");
  try {
    throw InputError("give it beside a model, as `adapters`");
  } catch (...) {
    EXPECT_EQ(current_failure("generate").sentence, "give it beside a model, as --lora");
  }
}

}  // namespace braid::failure_test
