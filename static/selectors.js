// Selectors of the cells of grids.

// Cells of tables and of lists in a grid; titles of blocks are links as well and are none.
export const cellLinks = "td > a[href], .partition-grid.wide > a[href]";

// Cells that are one partition each: other cells lead to a closer zoom.
export const partitionLinks = ".partition-grid a[href*='partitions/']";
