// Models whose files have codes of 8 bits, asked for in another form.
#include "pipeline/planner/kept_codes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/conversion/convert.h"
#include "pipeline/deployment/deployment.h"
#include "temporary_folder.h"

namespace braid::kept_codes_test {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const auto kDemo = fs::path(BRAID_SOURCE_DIR) / "models/demo";

TEST(KeptCodes, AreCountedWhereAnotherFormIsAskedFor) {
  const TemporaryFolder folder;
  std::vector<std::string> said;
  const Warn say = [&](const std::string& sentence) { said.push_back(sentence); };
  const auto v2 = folder / "v2", v1 = folder / "v1";
  convert({.model = kDemo,
           .out = v2,
           .memory = {.quantize = Quantize::kInt8, .keep_dense = {"img_in"}}});
  convert({.model = kDemo,
           .out = v1,
           .dtype = Dtype::kBfloat16,
           .memory = {.quantize_text = Quantize::kInt8V1}});
  const auto sentences_of = [&](const fs::path& model, const Memory& memory) {
    said.clear();
    (void)deploy(PipelineOptions{.model = model, .memory = memory}, say);
    return said;
  };
  for (const auto form : {Quantize::kNone, Quantize::kInt8, Quantize::kInt8Dynamic})
    EXPECT_THAT(sentences_of(v2, {.quantize = form}), IsEmpty());
  for (const auto form : {Quantize::kInt8V1, Quantize::kFloat8})
    EXPECT_THAT(
        sentences_of(v2, {.quantize = form, .quantize_text = form}),
        ElementsAre("`quantize` does not apply to 47 of 48 matrices of the transformer: its "
                    "files have them in another 8-bit form, which they keep"));
  EXPECT_THAT(sentences_of(v1, {.quantize_text = Quantize::kInt8V1}), IsEmpty());
  for (const auto form : {Quantize::kInt8, Quantize::kInt8Dynamic, Quantize::kFloat8})
    EXPECT_THAT(sentences_of(v1, {.quantize = form, .quantize_text = form}),
                ElementsAre(HasSubstr("`quantize_text` does not apply to")));
  said.clear();
  convert({.model = v2, .out = folder / "fp8", .memory = {.quantize = Quantize::kFloat8}},
          {.warning = say});
  EXPECT_THAT(said, ElementsAre(HasSubstr("`quantize` does not apply to")));
}

}  // namespace braid::kept_codes_test
