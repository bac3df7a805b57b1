// Sources of the tensors a model asks for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weights/names.h"
#include "weights/sources/tensor_plan.h"

namespace braid {

// A tensor that a model asked for, and what would become of it.
struct SurveyedTensor : TensorRequest {
  TensorPlan plan;
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const std::string& name() const = 0;

  // What becomes of it, or nullopt if nothing is to be read. Throws InputError if it is absent, has
  // another shape, or holds neither floating-point numbers nor, for a matrix, codes.
  virtual std::optional<TensorPlan> find(const TensorRequest& request) = 0;

  // Deliberately leaves everything below `scope` unused; returns its bytes.
  virtual std::int64_t skip(const std::string& /*scope*/) { return 0; }
  // Throws InputError naming the tensors no module asked for; returns the bytes of those that may
  // be unused.
  virtual std::int64_t finish() { return 0; }
};

// A checkpoint's tensors; `names` maps its names to ours.
std::shared_ptr<TensorSource> stored_tensors(Checkpoint checkpoint, Names names);
// Every tensor asked for, with drawn values.
std::shared_ptr<TensorSource> synthetic_tensors();
// Tensors of `source`, checked but not read.
std::shared_ptr<TensorSource> unread_tensors(std::shared_ptr<TensorSource> source);
// The same; everything asked for is added to `asked`.
std::shared_ptr<TensorSource> surveyed_tensors(std::shared_ptr<TensorSource> source,
                                               std::vector<SurveyedTensor>& asked);

}  // namespace braid
