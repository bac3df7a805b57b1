// What is wrong with a request, told by the field that it is about.
#pragma once

#include <cfloat>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"

namespace braid {

class RequestError : public InputError {
 public:
  // `field`: its name in /v1/jobs, which is that of the flag and mostly that in Request.
  RequestError(std::string field, const std::string& sentence)
      : InputError(sentence), field_(std::move(field)) {}
  const std::string& field() const { return field_; }

 private:
  std::string field_;
};

// Throws a RequestError composed of `parts` unless `holds`.
template <class... Parts>
void require_field(const char* field, bool holds, const Parts&... parts) {
  if (!holds) throw RequestError(field, text_of(parts...));
}

// `value`; throws unless it is finite in float32, in which models compute. `name` is the field's in
// sentences.
inline double checked_number(const char* field, const char* name, double value) {
  require_field(field, std::abs(value) <= FLT_MAX, "the ", name, " should be a finite number",
                std::isfinite(value) ? " of at most 3.4e38" : "", ", it is ", value);
  return value;
}

// `value`; throws unless it lies between the two.
template <class Number>
Number within(const char* field, const char* name, Number value, Number low, Number high) {
  require_field(field, value >= low && value <= high, "the ", name, " should lie between ", low,
                " and ", high, ", it is ", value);
  return value;
}

}  // namespace braid
