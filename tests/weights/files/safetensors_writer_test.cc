// What is written can be read back.
#include "weights/files/safetensors_writer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <span>

#include "base/error.h"
#include "files.h"
#include "weights/files/checkpoint.h"
#include "weights/files/safetensors_header.h"

namespace braid::safetensors_writer_test {

Checkpoint written(const TemporaryFolder& folder,
                   const std::map<std::string, at::Tensor>& tensors) {
  write_file(folder / "a.safetensors", write_safetensors(tensors));
  return Checkpoint::open_file(folder / "a.safetensors");
}

TEST(SafetensorsWriter, EveryDtypeIsReadBackAligned) {
  const TemporaryFolder folder;
  std::map<std::string, at::Tensor> tensors;
  for (const auto dtype :
       {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kFloat8_e4m3fn,
        at::kFloat8_e5m2, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble})
    tensors[c10::toString(dtype)] = at::arange(3).to(dtype);
  const auto file = written(folder, tensors);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const auto* const stored = file.find(name);
    ASSERT_TRUE(stored) << name;
    EXPECT_EQ(stored->dtype(), tensor.scalar_type());
    EXPECT_TRUE(stored->is_aligned()) << name;
    EXPECT_TRUE(at::equal(stored->view().to(at::kDouble), tensor.to(at::kDouble))) << name;
  }
}

TEST(SafetensorsWriter, ShapesAndStridesDoNotMatter) {
  const TemporaryFolder folder;
  const std::map<std::string, at::Tensor> tensors = {
      {"scalar", at::scalar_tensor(2.5)},
      {"empty", at::empty({0, 3})},
      {"expanded", at::ones({1, 3}).expand({4, 3})},
      {"sliced", at::arange(10).slice(0, 1, 9, 3)},
      {"transposed \"\xc3\xa9", at::arange(6).view({2, 3}).t()}};
  const auto file = written(folder, tensors);
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(file.find(name)->entry.shape, tensor.sizes().vec());
    EXPECT_TRUE(at::equal(file.find(name)->view(), tensor)) << name;
  }
}

TEST(SafetensorsWriter, NothingIsAFileToo) {
  const TemporaryFolder folder;
  EXPECT_TRUE(written(folder, {}).tensors().empty());
}

// transformers' save_pretrained() writes the format, and its older versions refuse files without
// it.
TEST(SafetensorsWriter, NotesAreBesideTheFormat) {
  using Notes = std::map<std::string, std::string>;
  const auto notes_of = [](const std::string& file) {
    return safetensors_notes(std::as_bytes(std::span(file)));
  };
  const std::map<std::string, at::Tensor> tensors = {{"a", at::ones({3})}};
  EXPECT_EQ(notes_of(write_safetensors(tensors)), (Notes{{"format", "pt"}}));
  EXPECT_EQ(notes_of(write_safetensors(tensors, {{"title", "a \"b\""}})),
            (Notes{{"format", "pt"}, {"title", "a \"b\""}}));
  const auto odd = notes_of(write_safetensors(tensors, {{"title", "a\xff"}}));
  EXPECT_EQ(odd.at("title"), "a\xef\xbf\xbd") << "no UTF-8";
}

TEST(SafetensorsWriter, RefusesWhatTheFormatDoesNotHave) {
  EXPECT_THROW(write_safetensors({{"a", at::zeros({1}, at::kComplexFloat)}}), InputError);
}

}  // namespace braid::safetensors_writer_test
