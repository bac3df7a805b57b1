// Adapters over the life of a server: the same files requested again, files replaced on disk,
// requests that switch back and forth, and scales between 0 and 1.
#include <chrono>
#include <cmath>

#include "adapted_model.h"
#include "comm/thread.h"
#include "weights/adapters/adapter_shelf.h"
#include "weights/codes/int8.h"

namespace braid::adapters_again_test {

using testing::HasSubstr;

class AdaptersAgain : public AdaptedModel {
 protected:
  static Tensors pair(const std::string& layer, std::int64_t rows, std::int64_t columns) {
    return {{layer + ".lora_A.weight", at::randn({2, columns})},
            {layer + ".lora_B.weight", at::randn({rows, 2})}};
  }
  static Tensor product_of(const Tensors& pair, const std::string& layer) {
    return pair.at(layer + ".lora_B.weight").mm(pair.at(layer + ".lora_A.weight"));
  }
  static Tensor product_of(const LowRank& low_rank) {
    return (low_rank.up_NR * low_rank.scales_R).mm(low_rank.down_RC);
  }
};

// A model's parts all prepare before the first of them switches.
TEST_F(AdaptersAgain, StayWhileOthersArePrepared) {
  const Weights w(source({}, AdapterMode::kUnmerged), {});
  const auto a = (w / "a").matrix("weight", {16, 6});
  for (const auto* const layer : {"b", "m", "n"}) (w / layer).skip();
  const auto first = pair("a", 16, 6), second = pair("a", 16, 6);
  const auto of_first = open_adapters({{.file = write(first, "first")}});
  const auto of_second = open_adapters({{.file = write(second, "second")}});
  unmerged_->switch_to(of_first);
  unmerged_->prepare(of_second);
  EXPECT_TRUE(at::allclose(product_of(*a.low_rank), product_of(first, "a")));
  unmerged_->switch_to(of_second);
  EXPECT_TRUE(at::allclose(product_of(*a.low_rank), product_of(second, "a")));
}

// Requests that alternate must not get each other's adapters, however many there were.
TEST_F(AdaptersAgain, GiveEveryRequestItsOwn) {
  const Weights w(source({}, AdapterMode::kUnmerged), {});
  const auto a = (w / "a").matrix("weight", {16, 6});
  for (const auto* const layer : {"b", "m", "n"}) (w / layer).skip();
  std::vector<Tensors> files;
  std::vector<std::vector<AppliedAdapter>> sets;
  for (int i = 0; i < 7; ++i) {
    files.push_back(pair("a", 16, 6));
    sets.push_back(
        open_adapters({{.file = write(files.back(), std::to_string(i)), .scale = 1.0 + i}}));
  }
  for (const std::size_t i : {0, 1, 0, 2, 1, 3, 0, 4, 2, 5, 6, 0, 0, 6, 1}) {
    unmerged_->switch_to(sets[i]);
    const auto want = (1.0 + double(i)) * product_of(files[i], "a");
    EXPECT_TRUE(at::allclose(product_of(*a.low_rank), want, /*rtol=*/1e-5, /*atol=*/1e-6)) << i;
  }
  // one file at two scales, and two files in both orders
  const auto twice = open_adapters({{.file = folder_ / "0.safetensors", .scale = 2}});
  const std::vector<AppliedAdapter> both = {sets[0][0], sets[1][0]},
                                    swapped = {sets[1][0], sets[0][0]};
  const auto sum = product_of(files[0], "a") + 2 * product_of(files[1], "a");
  for (int time = 0; time < 2; ++time) {
    unmerged_->switch_to(twice);
    EXPECT_TRUE(at::allclose(product_of(*a.low_rank), 2 * product_of(files[0], "a")));
    for (const auto& set : {both, swapped}) {
      unmerged_->switch_to(set);
      EXPECT_TRUE(at::allclose(product_of(*a.low_rank), sum, 1e-5, 1e-5));
    }
    unmerged_->switch_to({});
    EXPECT_FALSE(a.has_low_rank());
  }
}

// Recent ones are not read again: with them, a request waits for nothing.
TEST_F(AdaptersAgain, KeepTheLastFew) {
  const Weights w(source({}, AdapterMode::kUnmerged), {.dtype = at::kBFloat16});
  const auto a = (w / "a").matrix("weight", {16, 6});
  std::vector<std::vector<AppliedAdapter>> sets;
  for (int i = 0; i < 4; ++i)
    sets.push_back(open_adapters({{.file = write(pair("a", 16, 6), std::to_string(i))}}));
  std::vector<Tensor> made;  // kept alive, so that no memory is used twice
  for (const auto& set : sets) {
    unmerged_->switch_to(set);
    made.push_back(a.low_rank->up_NR);
  }
  for (const std::size_t i : {2, 0, 3, 1, 0}) {
    unmerged_->switch_to(sets[i]);
    EXPECT_EQ(a.low_rank->up_NR.const_data_ptr(), made[i].const_data_ptr()) << i;
  }
}

// The second client is as little helped by a LoRA of another model as the first.
TEST_F(AdaptersAgain, AreWarnedOfEachTime) {
  const Weights w(source({}, AdapterMode::kUnmerged), {});
  (void)(w / "a").matrix("weight", {16, 6});
  auto tensors = pair("a", 16, 6);
  const auto fitting = open_adapters({{.file = write(tensors, "fitting")}});
  tensors.merge(pair("elsewhere", 16, 6));
  const auto other = open_adapters({{.file = write(tensors)}});
  const auto told = [&](const std::vector<AppliedAdapter>& adapters) {
    warnings_.clear();
    unmerged_->switch_to(adapters, [&](const std::string& one) { warnings_.push_back(one); });
    return warnings_.size();
  };
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ(told(other), 1u) << time;
    EXPECT_THAT(warnings_, testing::Each(HasSubstr("2 tensors that the model has no use for")));
    EXPECT_EQ(told(fitting), 0u) << time;
  }
  unmerged_->warn_again(other, [&](const std::string& one) { warnings_.push_back(one); });
  EXPECT_EQ(warnings_.size(), 1u);
  EXPECT_NO_THROW(unmerged_->warn_again(other, {}));
}

// A layer of which another checkpoint swaps the halves, shared by two ranks: each rank's rows are
// half of the module's, and not the same half.
TEST_F(AdaptersAgain, StandBesideSharesOfSwappedLayers) {
  const auto up = at::randn({8, 2}), down = at::randn({2, 6});
  for (const auto& [name, order] : {std::pair("x.norm", 4), {"m", 0}}) {
    const auto file = write(
        {{std::string(name) + ".lora_A.weight", down}, {std::string(name) + ".lora_B.weight", up}});
    const auto whole = up.mm(down).roll({order}, {0});
    run_ranks({.size = 2}, [&, name = name](const Group& ranks) {
      const Weights w(source({{.file = file}}, AdapterMode::kUnmerged), {.tensor_parallel = ranks},
                      {{"m", column_parallel()}});
      const auto m = (w / "m").matrix("weight", {8, 6});
      for (const auto* const layer : {"a", "b", "n"}) (w / layer).skip();
      (void)(w / "m").tensor("bias", {8});
      w.finish();
      EXPECT_EQ(m.low_rank->up_NR.size(0), 4) << name;
      EXPECT_TRUE(at::allclose(product_of(*m.low_rank), take_share(whole, 0, ranks), 1e-6, 1e-6))
          << name << " " << ranks.rank();
    });
  }
}

TEST_F(AdaptersAgain, GiveSharesOfRowsTheMagnitudesOfTheirOutputs) {
  const auto up = at::randn({16, 2}), down = at::randn({2, 6}), m = at::rand({16}) + 0.5;
  const auto file =
      write({{"a.lora_A.weight", down}, {"a.lora_B.weight", up}, {"a.dora_scale", m}});
  const auto sum = base_.at("a.weight") + up.mm(down);
  const auto want = m.unsqueeze(1) * sum / sum.norm(2, {1}, true);
  run_ranks({.size = 2}, [&](const Group& ranks) {
    const Weights w(source({{.file = file}}), {.tensor_parallel = ranks},
                    {{"a", column_parallel()}});
    const auto a = (w / "a").matrix("weight", {16, 6});
    EXPECT_TRUE(at::allclose(a.values_NC, take_share(want, 0, ranks), 1e-5, 1e-5)) << ranks.rank();
  });
}

// diffusers and ComfyUI do so; an adapter at 0 is off.
TEST_F(AdaptersAgain, ReplaceWholeTensorsAtAnyScale) {
  const auto weight = at::randn({16, 6}), n = at::randn({6});
  const auto file = write({{"a.set_weight", weight}, {"n.set_weight", n}});
  for (const double scale : {0.0, 0.25, 0.85, 1.0, 1.5, -1.0}) {
    const auto got = all(load({{.file = file, .scale = scale}}));
    for (const auto& [name, whole] : {std::pair("a.weight", weight), {"n.weight", n}}) {
      EXPECT_TRUE(at::equal(got.at(name), scale == 0 ? base_.at(name) : whole))
          << name << " " << scale;
    }
  }
}

// LyCORIS divides alpha by the second factor's rank if both are products.
TEST_F(AdaptersAgain, DivideByTheRankOfTheSecondFactor) {
  const auto a = at::randn({4, 3}), b = at::randn({3, 2}), c = at::randn({4, 5}),
             d = at::randn({5, 3});
  const auto both = at::kron(a.mm(b), c.mm(d));
  const Tensors tensors = {{"a.lokr_w1_a", a},
                           {"a.lokr_w1_b", b},
                           {"a.lokr_w2_a", c},
                           {"a.lokr_w2_b", d},
                           {"a.alpha", at::full({}, 10.f)}};
  expect_added({{.file = write(tensors)}}, {{"a.weight", 2 * both}});
  auto first = tensors;
  first.erase("a.lokr_w2_a");
  first.erase("a.lokr_w2_b");
  first["a.lokr_w2"] = c.mm(d);
  expect_added({{.file = write(first)}}, {{"a.weight", both * 10 / 3}});
}

// Weights that stay as a file stores them take products beside them, and nothing else: what depends
// on the weight's lengths is fused into its numbers.
TEST_F(AdaptersAgain, AreFusedIntoStoredCodesIfTheyAreMoreThanProducts) {
  const auto codes = base_.at("a.weight").to(at::kFloat8_e4m3fn);
  write_file(folder_ / "m.safetensors", write_safetensors({{"a.weight", codes}}));
  const auto up = at::randn({16, 2}), down = at::randn({2, 6}), m = at::rand({16}) + 0.5;
  Tensors tensors = {{"a.lora_A.weight", down}, {"a.lora_B.weight", up}};
  const auto loaded = [&] {
    const Weights w(source({{.file = write(tensors)}}), {.stored_codes = StoredCodes::kKept});
    const auto a = (w / "a").matrix("weight", {16, 6});
    w.finish();
    return a;
  };
  const auto beside = loaded();
  EXPECT_NE(beside.coding, nullptr);
  EXPECT_TRUE(at::equal(dequantize(beside, at::kFloat), codes.to(at::kFloat)));
  EXPECT_TRUE(at::allclose(product_of(*beside.low_rank), up.mm(down)));
  tensors["a.dora_scale"] = m;
  const auto fused = loaded();
  EXPECT_EQ(fused.coding, nullptr);
  const auto sum = codes.to(at::kFloat) + up.mm(down);
  const auto want = m.unsqueeze(1) * sum / sum.norm(2, {1}, true);
  EXPECT_TRUE(at::allclose(fused.values_NC, want, 1e-5, 1e-6));
}

// peft's configuration is of the file it writes beside it, not of others in that folder.
TEST_F(AdaptersAgain, TakeNoConfigurationOfAnotherFile) {
  const auto up = at::randn({16, 4}), down = at::randn({4, 6});
  const Tensors tensors = {{"base_model.model.a.lora_A.weight", down},
                           {"base_model.model.a.lora_B.weight", up}};
  write_file(folder_ / "adapter_config.json", R"({"r": 4, "lora_alpha": 12})");
  expect_added({{.file = write(tensors, "adapter_model")}}, {{"a.weight", 3 * up.mm(down)}});
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
  expect_added({{.file = write(tensors, "other")}}, {{"a.weight", up.mm(down)}});
  EXPECT_THAT(warnings_, testing::ElementsAre(HasSubstr(
                             "other.safetensors lies beside an adapter_config.json, whose alpha is "
                             "that of adapter_model.safetensors")));
}

// ---------------------------------------------------------------------------- files on a shelf

class ShelvedAdapters : public AdaptersAgain {
 protected:
  // Does what a trainer does: another file under the same name, `later` seconds younger.
  fs::path replace(const Tensors& tensors, int later) const {
    const auto path = write(tensors);
    fs::last_write_time(path, start_ + std::chrono::seconds(later));
    return path;
  }
  fs::file_time_type start_ = fs::file_time_type::clock::now() - std::chrono::hours(1);
  AdapterShelf shelf_;
};

TEST_F(ShelvedAdapters, AreOpenedOnce) {
  const auto file = replace(pair("a", 16, 6), 0);
  const auto first = shelf_.open({{.file = file, .scale = 0.5}, {.file = file, .scale = 2}});
  const auto again = shelf_.open({{.file = file, .scale = 3}});
  EXPECT_EQ(first[0].file, first[1].file);
  EXPECT_EQ(first[0].file, again[0].file);
  EXPECT_EQ(first[0].scale, 0.5);
  EXPECT_EQ(first[1].scale, 2);
  EXPECT_EQ(again[0].scale, 3);
}

TEST_F(ShelvedAdapters, AreOpenedAgainIfTheFileHasChanged) {
  const auto of_a = pair("a", 16, 6), others = pair("a", 16, 6);
  const auto file = replace(of_a, 0);
  const auto first = shelf_.open({{.file = file}}).front().file;
  // as long as before, but younger
  EXPECT_NE(shelf_.open({{.file = replace(others, 1)}}).front().file, first);
  const auto second = shelf_.open({{.file = file}}).front().file;
  // as old as before, but longer
  auto more = others;
  more["a.alpha"] = at::ones({});
  EXPECT_NE(shelf_.open({{.file = replace(more, 1)}}).front().file, second);
  EXPECT_EQ(shelf_.open({{.file = file}}).front().file->modules().at("a").tensors.size(), 3u);
}

// Tools that unpack or copy set times back.
TEST_F(ShelvedAdapters, AreOpenedAgainWhereTheirTimeWasSetBack) {
  const auto file = replace(pair("a", 16, 6), 0);
  const auto first = shelf_.open({{.file = file}}).front().file;
  EXPECT_NE(shelf_.open({{.file = replace(pair("a", 16, 6), 0)}}).front().file, first);
}

// A folder stays as old as it was when a file in it is written anew.
TEST_F(ShelvedAdapters, InFoldersAreOpenedAgainIfTheirFilesHaveChanged) {
  const auto folder = folder_ / "lora";
  fs::create_directory(folder);
  const auto put = [&](const char* name, const std::string& bytes, int later) {
    write_file(folder / name, bytes);
    fs::last_write_time(folder / name, start_ + std::chrono::seconds(later));
    fs::last_write_time(folder, start_);
  };
  put("adapter_config.json", R"({"r": 4, "lora_alpha": 4})", 0);
  put("adapter_model.safetensors", write_safetensors(pair("a", 16, 6)), 0);
  const auto opened = [&] { return shelf_.open({{.file = folder}}).front().file; };
  const auto first = opened();
  EXPECT_EQ(opened(), first);
  put("adapter_model.safetensors", write_safetensors(pair("a", 16, 6)), 1);
  const auto second = opened();
  EXPECT_NE(second, first);
  put("adapter_config.json", R"({"r": 4, "lora_alpha": 8})", 1);
  EXPECT_NE(opened(), second);
}

TEST_F(ShelvedAdapters, AreRefusedAsWithoutAShelf) {
  const auto file = replace(pair("a", 16, 6), 0);
  (void)shelf_.open({{.file = file}});
  for (const double scale : {double(NAN), double(INFINITY), -double(INFINITY)})
    EXPECT_THAT(message_of([&] { (void)shelf_.open({{.file = file, .scale = scale}}); }),
                HasSubstr("should be a finite number"));
  fs::remove(file);
  EXPECT_THAT(message_of<std::exception>([&] { (void)shelf_.open({{.file = file}}); }),
              HasSubstr(file.string()));
  EXPECT_NO_THROW((void)shelf_.open({{.file = replace(pair("a", 16, 6), 2)}}));
}

// -------------------------------------------------------------------------------------- names

TEST(AdapterModules, BelongToThePartWithTheLongestPrefix) {
  const std::vector<std::string> clip = {"lora_te_", "text_encoder."}, t5 = {"lora_te_2_"},
                                 all = {"", "transformer."};
  EXPECT_TRUE(owns(clip, t5, "lora_te_layers_0"));
  EXPECT_FALSE(owns(clip, t5, "lora_te_2_layers_0"));
  EXPECT_TRUE(owns(t5, clip, "lora_te_2_layers_0"));
  EXPECT_TRUE(owns(clip, t5, "text_encoder_layers"));
  EXPECT_FALSE(owns(clip, t5, "lora_unet_blocks")) << "nobody's here";
  EXPECT_TRUE(owns(all, clip, "lora_unet_blocks"));
  EXPECT_TRUE(owns(all, clip, "transformer_blocks"));
  EXPECT_FALSE(owns(all, clip, "lora_te_layers_0"));
  EXPECT_FALSE(owns(clip, clip, "lora_te_layers_0")) << "of two alike none";
}

// A tensor that is joined of two others cannot be replaced by one of them.
TEST(AdapterModules, ReplaceOnlyWholeTensors) {
  const AdapterNames names{
      .prefixes = {"", "p."},
      .tables = {{}, {{{"n.scale", {"n.first", "n.second"}}}}, {{{"n.scale", {"norm.weight"}}}}}};
  EXPECT_EQ(replacements_of(names, "n.scale"),
            (std::vector<std::string>{"n_scale", "p_n_scale", "norm_weight", "p_norm_weight"}));
}

}  // namespace braid::adapters_again_test
