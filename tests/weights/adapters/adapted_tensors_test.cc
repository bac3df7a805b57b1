// Adapters of tensors that are neither matrices nor vectors: tokens for padding, tables, and
// convolutions.
#include "adapted_model.h"

namespace braid::adapted_tensors_test {

using testing::HasSubstr;

class AdaptedTensorsTest : public AdaptedModel {
 protected:
  AdaptedTensorsTest() {
    base_["t.table"] = at::randn({1, 2, 3});
    base_["c.weight"] = at::randn({4, 3, 1, 2, 2});
    write_file(folder_ / "m.safetensors", write_safetensors(base_));
  }
};

TEST_F(AdaptedTensorsTest, AreChangedOrReplacedByName) {
  const auto change = at::randn({1, 2, 3});
  for (const auto& stored : {change, change.flatten(), change.squeeze(0)})
    expect_added({{.file = write({{"transformer.t.table.diff", stored}}), .scale = -0.5}},
                 {{"t.table", -0.5 * change}});
  for (const std::string name : {"transformer.t.table", "t.table.set_weight"})
    expect_added({{.file = write({{name, change}, {"n.diff", at::zeros({6})}})}},
                 {{"t.table", change - base_.at("t.table")}});
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
  EXPECT_THAT(refusal({{"t.table.diff", at::ones({7})}}),
              HasSubstr("'t.table' has the shape [7], the model's t.table has [1, 2, 3]"));
  EXPECT_THAT(refusal({{"t.table.diff", at::full({6}, NAN)}}), HasSubstr("not finite"));
}

TEST_F(AdaptedTensorsTest, AreRefusedIfEmpty) {
  EXPECT_THAT(refusal({{"t.table.diff", at::ones({0})}}),
              HasSubstr("'t.table' has the shape [0], the model's t.table has [1, 2, 3]"));
  EXPECT_THAT(refusal({{"n.diff", at::ones({0})}}), HasSubstr("is for a weight of [0, 1]"));
  EXPECT_THAT(refusal({{"c.diff", at::ones({0, 3, 1, 2, 2})}}), HasSubstr("[0, 12]"));
}

TEST_F(AdaptedTensorsTest, CanOnlyBeFused) {
  const auto file = write({{"t.table.diff", at::ones({1, 2, 3})}});
  const Weights w(source({{.file = file}}, AdapterMode::kUnmerged), {});
  EXPECT_THAT(message_of([&] {
                (w / "t").tensor("table", {1, 2, 3});
              }),
              HasSubstr("changes t.table of [1, 2, 3], which is none of the matrices that products "
                        "stay beside: it can only be fused"));
}

// Whatever changes them, and however it is stored: a request's file must not be applied by half.
TEST_F(AdaptedTensorsTest, MayNotBeChangedByRequests) {
  const Weights w(source({}, AdapterMode::kUnmerged), {});
  const auto a = (w / "a").matrix("weight", {16, 6});
  (void)(w / "t").tensor("table", {1, 2, 3});
  (void)(w / "c").tensor("weight", {4, 3, 1, 2, 2});
  (void)(w / "b").tensor("weight", {6, 16});  // a matrix that nothing stays beside
  (void)(w / "n").tensor("weight", {6});
  const auto refusal_of = [&](Tensors tensors) {
    tensors["a.lora_A.weight"] = at::randn({2, 6});
    tensors["a.lora_B.weight"] = at::randn({16, 2});
    const auto opened = open_adapters({{.file = write(tensors)}});
    return message_of([&] { unmerged_->switch_to(opened); });
  };
  const auto down = at::randn({2, 16}), up = at::randn({6, 2});
  for (const auto& [tensors, what] : std::vector<std::pair<Tensors, std::string>>{
           {{{"t.table.diff", at::ones({1, 2, 3})}}, "t.table of [1, 2, 3]"},
           {{{"t.table.diff", at::ones({2, 3})}}, "t.table of [1, 2, 3]"},
           {{{"c.diff", at::ones({4, 3, 1, 2, 2})}}, "c.weight of [4, 3, 1, 2, 2]"},
           {{{"c.lora_A.weight", at::ones({2, 3, 1, 2, 2})},
             {"c.lora_B.weight", at::ones({4, 2, 1, 1, 1})}},
            "c.weight of [4, 3, 1, 2, 2]"},
           {{{"b.lora_A.weight", down}, {"b.lora_B.weight", up}}, "b.weight of [6, 16]"},
           {{{"b.lokr_w1", at::ones({2, 4})}, {"b.lokr_w2", at::ones({3, 4})}},
            "b.weight of [6, 16]"},
           {{{"n.diff", at::ones({6, 1})}}, "biases or norms"}}) {
    EXPECT_THAT(refusal_of(tensors),
                testing::AllOf(HasSubstr("changes " + what), HasSubstr("': it can only be fused")));
    EXPECT_FALSE(a.has_low_rank());
  }
  EXPECT_EQ(refusal_of({}), "");
  EXPECT_TRUE(a.has_low_rank());
}

// Peft and LyCORIS give the first factor the window.
TEST_F(AdaptedTensorsTest, OfConvolutionsHaveChannelsTimesWindow) {
  const auto down = at::randn({2, 3, 1, 2, 2}), up = at::randn({4, 2, 1, 1, 1});
  const auto product = up.flatten(1).mm(down.flatten(1)).view({4, 3, 1, 2, 2});
  expect_added({{.file = write({{"c.lora_A.weight", down}, {"c.lora_B.weight", up}})}},
               {{"c.weight", product}});
  const auto diff = at::randn({4, 3, 1, 2, 2});
  expect_added({{.file = write({{"c.diff", diff}})}}, {{"c.weight", diff}});
  const auto left = at::randn({2, 3}), right = at::randn({2, 1, 1, 2, 2});
  expect_added({{.file = write({{"c.lokr_w1", left}, {"c.lokr_w2", right}})}},
               {{"c.weight", at::kron(left.view({2, 3, 1, 1, 1}), right)}});
  EXPECT_THAT(refusal({{"c.lora_A.weight", at::ones({2, 3})}, {"c.lora_B.weight", up}}),
              HasSubstr("is for a weight of [4, 3], the model's c.weight is [4, 12]"));
}

// ComfyUI multiplies the factors and gives the product the weight's shape.
TEST_F(AdaptedTensorsTest, OfNormsMayBeProductsOfEveryKind) {
  const auto up = at::randn({6, 2}), down = at::randn({2, 1});
  const auto product = up.mm(down).flatten();
  expect_added({{.file = write({{"n.lora_A.weight", down}, {"n.lora_B.weight", up}})}},
               {{"n.weight", product}});
  expect_added({{.file = write({{"n.hada_w1_a", up},
                                {"n.hada_w1_b", down},
                                {"n.hada_w2_a", up},
                                {"n.hada_w2_b", down}})}},
               {{"n.weight", product * product}});
  const auto left = at::randn({2, 1}), right = at::randn({3, 1});
  expect_added({{.file = write({{"n.lokr_w1", left}, {"n.lokr_w2", right}})}},
               {{"n.weight", at::kron(left, right).flatten()}});
  const auto lengths = at::rand({6});
  const auto sum = base_.at("n.weight") + product;
  expect_added(
      {{.file = write(
            {{"n.lora_A.weight", down}, {"n.lora_B.weight", up}, {"n.dora_scale", lengths}})}},
      {{"n.weight", sum / sum.abs() * lengths - base_.at("n.weight")}});
}

}  // namespace braid::adapted_tensors_test
