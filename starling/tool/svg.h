// What SVG pictures have in common: the frame, text, looks that are told apart without colour, and
// round numbers for axes. No fonts: text is text. Pure functions; the same bytes for the same
// input.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace starling::tool {

// A picture of that size around `body`, with a title on top of it; `style` adds rules.
std::string svg_of(double width, double height, const std::string& title, const std::string& body,
                   const std::string& style = "");

// Fit for text and attributes.
std::string escaped(const std::string& text);

// `anchor`: start, middle or end; `more`: further attributes, with a space before.
std::string text_at(double x, double y, const char* anchor, const std::string& text,
                    const char* more = "");

struct Look {
  const char* colour;  // told apart by those who see few, too (Okabe and Ito)
  const char* dashes;
  const char* mark;  // a path around 0, 0
};
// The first 49 differ, without their colour too.
Look look_of(std::size_t number);

// About `count` round numbers from `low` to `high`, in steps of 1, 2 or 5 times a power of ten.
// Requires: low < high.
std::vector<double> ticks_between(double low, double high, int count);

// As many digits as tell ticks apart that are `step` apart.
std::string tick_text(double value, double step);

}  // namespace starling::tool
