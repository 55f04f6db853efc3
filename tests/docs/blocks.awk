# Prints block number `want` of a page's ```cpp blocks, with its place in the page.
/^```cpp/ { inside = ++count == want; if (inside) printf "#line %d \"%s\"\n", NR + 1, FILENAME; next }
/^```/ { inside = 0 }
inside
